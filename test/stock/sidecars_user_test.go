package stock_test

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// user is a claim of the driver, with its volume, and the pod that may use it.
type user struct {
	driver     *movableDriver
	claim      *corev1.PersistentVolumeClaim
	pv         *corev1.PersistentVolume
	pod        *corev1.Pod
	attachment *storagev1.VolumeAttachment
	// attached are the objects as they were once the volume was attached.
	attached []client.Object
}

func (d *movableDriver) newUser(ctx context.Context, name string) *user {
	GinkgoHelper()
	u := &user{driver: d, claim: Claim(ClaimNamed(name), InClass(movable))}
	create(ctx, u.claim)
	return u
}

// use makes a claim, and waits until it is bound.
func (d *movableDriver) use(ctx context.Context, name string) *user {
	GinkgoHelper()
	u := d.newUser(ctx, name)
	u.pv = eventuallyBound(ctx, u.claim)
	Expect(d.volumes(ctx)).To(HaveKeyWithValue(u.pv.Name, u.handle()))
	return u
}

// copyOf makes a claim that is a copy of another one, which gets the finalizer of external-provisioner.
func (d *movableDriver) copyOf(ctx context.Context, source *user) *user {
	GinkgoHelper()
	u := &user{driver: d, claim: Claim(ClaimNamed(source.claim.Name+"-copy"), InClass(movable), func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source.claim.Name}
	})}
	create(ctx, u.claim)
	u.pv = eventuallyBound(ctx, u.claim)
	Expect(users.Get(ctx, keyOf(source.claim), source.claim)).To(Succeed())
	Expect(source.claim.Finalizers).To(ContainElement("provisioner.storage.kubernetes.io/cloning-protection"))
	return u
}

// interrupt makes a claim, and ends its provisioner after the driver made the volume, and before anything
// records it.
func (d *movableDriver) interrupt(ctx context.Context, name string, end func()) *user {
	GinkgoHelper()
	release := d.hold("CreateVolume")
	defer release()
	before := d.count()
	u := d.newUser(ctx, name)
	Eventually(d.count).Should(BeNumerically(">", before))
	end()
	Expect(d.volumes(ctx)).To(HaveKey("pvc-" + string(u.claim.UID)))
	Expect(users.Get(ctx, keyOf(Volume("pvc-"+string(u.claim.UID))), &corev1.PersistentVolume{})).To(MatchError(ContainSubstring("not found")))
	return u
}

// interruptCalls has a claim grow by 1Gi, a pod come and another go, and ends the program that serves them after the driver has
// done it all, and before anything records that.
func (d *movableDriver) interruptCalls(ctx context.Context, by string, grown, comes, goes *user, end func()) {
	GinkgoHelper()
	release := d.hold("ControllerExpandVolume", "ControllerPublishVolume", "ControllerUnpublishVolume")
	defer release()
	before := d.count()
	size := grown.pv.Spec.Capacity.Storage().DeepCopy()
	size.Add(resource.MustParse("1Gi"))
	grown.ask(ctx, size.String())
	comes.createPod(ctx)
	remove(ctx, goes.pod)
	Eventually(d.different).WithContext(ctx).WithArguments(before).Should(ConsistOf(by+" ControllerExpandVolume "+grown.handle(),
		by+" ControllerPublishVolume "+comes.handle(), by+" ControllerUnpublishVolume "+goes.handle()))
	end()
}

// restartManager has the manager run, whatever a spec did to it.
func restartManager(ctx SpecContext) {
	killManager()
	Expect(world.manager.StartReady(ctx)).To(Succeed())
}

func killManager() {
	GinkgoHelper()
	Expect(world.manager.Kill()).To(Succeed())
}

// expectOne waits until a claim is bound, and expects that the driver has the volumes that the cluster has.
func (d *movableDriver) expectOne(ctx context.Context, of *user) {
	GinkgoHelper()
	of.pv = eventuallyBound(ctx, of.claim)
	recorded := map[string]string{}
	volumes := &corev1.PersistentVolumeList{}
	Expect(users.List(ctx, volumes)).To(Succeed())
	for _, pv := range volumes.Items {
		if pv.Spec.CSI != nil && pv.Spec.CSI.Driver == movable {
			recorded[pv.Name] = pv.Spec.CSI.VolumeHandle
		}
	}
	Expect(d.volumes(ctx)).To(Equal(recorded))
	Expect(slices.Collect(maps.Keys(recorded))).To(ContainElement(of.pv.Name))
}

// expectStill expects that no call of the driver changes anything for a while.
func (d *movableDriver) expectStill(ctx context.Context, before int) {
	GinkgoHelper()
	Consistently(d.since).WithContext(ctx).WithArguments(before).WithTimeout(still).Should(BeEmpty())
}

// expectNoTraces expects that nothing waits for Stowage any more.
func expectNoTraces(ctx context.Context, of *user) {
	GinkgoHelper()
	class := &storagev1.StorageClass{}
	Expect(users.Get(ctx, client.ObjectKey{Name: movable}, class)).To(Succeed())
	for _, object := range []client.Object{class, of.claim, of.pv, of.attachment} {
		Expect(users.Get(ctx, keyOf(object), object)).To(Succeed())
		Expect(object.GetFinalizers()).NotTo(ContainElement(ContainSubstring(stowagev1alpha1.GroupVersion.Group)), "%T", object)
	}
}

func (u *user) handle() string { return u.pv.Spec.CSI.VolumeHandle }

// attach has a pod use the claim, and waits until the volume is attached to its node.
func (u *user) attach(ctx context.Context) {
	GinkgoHelper()
	u.createPod(ctx)
	u.awaitAttached(ctx)
}

func (u *user) createPod(ctx context.Context) {
	GinkgoHelper()
	u.pod = on(Pod(u.claim.Name, "", u.claim.Name), movableNode)
	create(ctx, u.pod)
}

func (u *user) awaitAttached(ctx context.Context) {
	GinkgoHelper()
	Expect(eventuallyPlaced(ctx, u.pod)).To(Equal(movableNode))
	eventuallyAttachedTo(ctx, movableNode, u.pv)
	u.attachment, u.attached = attachmentOf(u.pv, movableNode), nil
	for _, object := range []client.Object{u.claim, u.pv, u.attachment} {
		Expect(users.Get(ctx, keyOf(object), object)).To(Succeed())
		u.attached = append(u.attached, object.DeepCopyObject().(client.Object))
	}
}

func (u *user) detach(ctx context.Context) {
	GinkgoHelper()
	remove(ctx, u.pod)
	u.awaitDetached(ctx)
}

func (u *user) awaitDetached(ctx context.Context) {
	GinkgoHelper()
	eventuallyGone(ctx, attachmentOf(u.pv, movableNode))
}

func (u *user) grow(ctx context.Context, size string) {
	GinkgoHelper()
	u.ask(ctx, size)
	u.awaitSize(ctx, size)
}

func (u *user) ask(ctx context.Context, size string) {
	GinkgoHelper()
	Expect(users.Get(ctx, keyOf(u.claim), u.claim)).To(Succeed())
	before := u.claim.DeepCopy()
	Asking(size)(u.claim)
	Expect(users.Patch(ctx, u.claim, client.MergeFrom(before))).To(Succeed())
}

func (u *user) awaitSize(ctx context.Context, size string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, keyOf(u.claim), u.claim)).To(Succeed())
		g.Expect(u.claim.Status.Capacity.Storage().String()).To(Equal(size))
		g.Expect(u.claim.Status.AllocatedResourceStatuses).To(BeEmpty())
		g.Expect(u.claim.Status.Conditions).NotTo(ContainElement(HaveField("Type", corev1.PersistentVolumeClaimResizing)))
		g.Expect(users.Get(ctx, keyOf(u.pv), u.pv)).To(Succeed())
		g.Expect(u.pv.Spec.Capacity.Storage().String()).To(Equal(size))
	}).WithContext(ctx).Should(Succeed())
}

// remove deletes the claim, and waits until its volume is gone, and the driver's, too.
func (u *user) remove(ctx context.Context) {
	GinkgoHelper()
	remove(ctx, u.claim)
	eventuallyGone(ctx, u.claim)
	eventuallyGone(ctx, u.pv)
	Expect(u.driver.volumes(ctx)).NotTo(HaveKey(u.pv.Name))
}
