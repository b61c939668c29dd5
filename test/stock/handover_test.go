package stock_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/controlplane"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/monitor"
)

// foreign is a driver, and the class of its volumes, that Stowage knows nothing of. The
// suite plays its provisioner and its attacher.
const foreign = "foreign.example.com"

var _ = Describe("A cluster that is handed over", func() {
	It("from kube-controller-manager to Stowage, and back, loses and changes nothing", func(ctx SpecContext) {
		there := settle(ctx)
		DeferCleanup(there.remove)
		before, err := monitor.New(context.WithoutCancel(ctx), users, func(client.Object) bool { return true })
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(before.Stop)

		standalone, err := controlplane.StandaloneControllers()
		Expect(err).NotTo(HaveOccurred())
		By("switching off the controllers that Stowage replaces")
		Expect(plane.SwitchControllers(ctx, standalone)).To(Succeed())
		Expect(world.manager.Stop()).To(Succeed())
		world.startManager(ctx, "cluster")
		DeferCleanup(func(ctx SpecContext) { backToClasses(ctx) })
		newcomersWork(ctx, "under-stowage")
		Consistently(before.Check).WithTimeout(still).Should(Succeed())

		By("switching them on again")
		backToClasses(ctx)
		newcomersWork(ctx, "under-kubernetes")
		Consistently(before.Check).WithTimeout(still).Should(Succeed())
	})
})

// backToClasses hands the cluster back, if it isn't yet.
func backToClasses(ctx context.Context) {
	GinkgoHelper()
	Expect(world.manager.Stop()).To(Succeed())
	Expect(plane.SwitchControllers(ctx, controlplane.AllControllers)).To(Succeed())
	world.startManager(ctx, "classes")
}

// settled is what a cluster has that is in use for some time.
type settled struct {
	pod             *corev1.Pod
	claims, dynamic []*corev1.PersistentVolumeClaim
	static          *corev1.PersistentVolume
	// theirs is the claim of the foreign driver, as which class and driver are known.
	theirs *corev1.PersistentVolumeClaim
	known  []client.Object
}

// settle makes claims of all kinds, bound and used by a pod, but for one.
func settle(ctx context.Context) settled {
	GinkgoHelper()
	class := Class(foreign, foreign, nil)
	s := settled{
		pod:    on(Pod("user", "", "local", "nfs", "disk", "theirs", "static"), "small"),
		static: Volume("static", OfClass("by-hand")),
		theirs: Claim(ClaimNamed("theirs"), InClass(foreign)),
		known:  []client.Object{class, &storagev1.CSIDriver{ObjectMeta: class.ObjectMeta}},
		dynamic: []*corev1.PersistentVolumeClaim{
			Claim(ClaimNamed("disk"), InClass(cloud)),
			Claim(ClaimNamed("local"), InClass(disks), Asking("8Mi")),
			Claim(ClaimNamed("nfs"), InClass(share), Asking("8Mi")),
			Claim(ClaimNamed("unused"), InClass(share), Asking("8Mi")),
		},
	}
	create(ctx, s.known...)
	s.claims = append([]*corev1.PersistentVolumeClaim{s.theirs, Claim(ClaimNamed("static"), InClass("by-hand"))}, s.dynamic...)
	create(ctx, s.static, s.pod)
	for _, claim := range s.claims {
		create(ctx, claim)
	}
	provisionForeign(ctx, s.theirs)
	eventuallyPlaced(ctx, s.pod)
	inUse := []*corev1.PersistentVolume{eventuallyBound(ctx, s.dynamic[0]), eventuallyBound(ctx, s.theirs)}
	attachForeign(ctx, attachmentOf(inUse[1], "small"))
	for _, pv := range inUse {
		eventuallyAttachedTo(ctx, "small", pv)
	}
	setInUse(ctx, "small", inUse...)
	for _, claim := range s.claims {
		eventuallyBound(ctx, claim)
	}
	return s
}

// remove removes it all; the foreign volume is left to its provisioner.
func (s settled) remove(ctx SpecContext) {
	setInUse(ctx, "small")
	remove(ctx, s.pod)
	for _, claim := range s.claims {
		remove(ctx, claim)
		eventuallyGone(ctx, claim)
	}
	remove(ctx, s.static, Volume("pvc-"+string(s.theirs.UID)))
	remove(ctx, s.known...)
	eventuallyNoVolumes(ctx)
}

// provisionForeign is the foreign driver's provisioner.
func provisionForeign(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, keyOf(claim), claim)).To(Succeed())
		g.Expect(claim.Annotations).To(HaveKeyWithValue(volume.AnnStorageProvisioner, foreign))
	}).Should(Succeed())
	pv := Volume("pvc-"+string(claim.UID), OfClass(foreign), ReservedTo(claim.Name), Reclaimed(corev1.PersistentVolumeReclaimDelete))
	pv.Annotations = map[string]string{volume.AnnDynamicallyProvisioned: foreign}
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: foreign, VolumeHandle: pv.Name}}
	pv.Spec.ClaimRef.UID = claim.UID
	create(ctx, pv)
}

// attachForeign is the foreign driver's attacher.
func attachForeign(ctx context.Context, attachment *storagev1.VolumeAttachment) {
	GinkgoHelper()
	Eventually(func() error { return users.Get(ctx, keyOf(attachment), attachment) }).Should(Succeed())
	before := attachment.DeepCopy()
	attachment.Status.Attached = true
	Expect(users.Status().Patch(ctx, attachment, client.MergeFrom(before))).To(Succeed())
}

// newcomersWork expects that new claims are bound, and a new pod's disk is attached, and
// detached after it.
func newcomersWork(ctx context.Context, name string) {
	GinkgoHelper()
	By("trying new claims and pods, " + name)
	static, wanted := Volume(name, OfClass(name)), Claim(ClaimNamed(name+"-static"), InClass(name))
	now := Claim(ClaimNamed(name+"-now"), InClass(share), Asking("8Mi"))
	local := Claim(ClaimNamed(name+"-local"), InClass(disks), Asking("8Mi"))
	disk := Claim(ClaimNamed(name+"-disk"), InClass(cloud))
	pod := on(Pod(name, "", local.Name, disk.Name), "large")
	create(ctx, static, wanted, now, local, disk, pod)
	eventuallyPlaced(ctx, pod)
	eventuallyBound(ctx, wanted)
	volumes := []*corev1.PersistentVolume{eventuallyBound(ctx, now), eventuallyBound(ctx, local), eventuallyBound(ctx, disk)}
	eventuallyAttachedTo(ctx, "large", volumes[2])

	remove(ctx, pod, wanted, now, local, disk)

	for _, pv := range volumes {
		eventuallyGone(ctx, pv)
	}
	eventuallyGone(ctx, wanted)
	remove(ctx, static)
	eventuallyGone(ctx, static)
	Expect(world.disks(ctx)).NotTo(ContainElement(volumes[2].Name))
}
