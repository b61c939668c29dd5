package stock_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/controlplane"
	. "github.com/stowage-dev/stowage/test/fixture"
)

// foreign is a driver, and the class of its volumes, that Stowage knows nothing of. The
// suite plays its provisioner and its attacher.
const foreign = "foreign.example.com"

var _ = Describe("A cluster that is handed over", func() {
	It("from kube-controller-manager to Stowage, and back, loses and changes nothing", func(ctx SpecContext) {
		settle(ctx)
		before := newWitness(ctx)

		standalone, err := controlplane.StandaloneControllers()
		Expect(err).NotTo(HaveOccurred())
		By("switching off the controllers that Stowage replaces")
		Expect(plane.SwitchControllers(ctx, standalone)).To(Succeed())
		Expect(world.manager.Stop()).To(Succeed())
		world.startManager(ctx, "cluster")
		DeferCleanup(func(ctx SpecContext) { backToClasses(ctx) })
		newcomersWork(ctx, "under-stowage")
		Consistently(before.expectNoChange).WithTimeout(still).Should(Succeed())

		By("switching them on again")
		backToClasses(ctx)
		newcomersWork(ctx, "under-kubernetes")
		Consistently(before.expectNoChange).WithTimeout(still).Should(Succeed())
	})
})

// backToClasses hands the cluster back, if it isn't yet.
func backToClasses(ctx context.Context) {
	GinkgoHelper()
	Expect(world.manager.Stop()).To(Succeed())
	Expect(plane.SwitchControllers(ctx, controlplane.AllControllers)).To(Succeed())
	world.startManager(ctx, "classes")
}

// settle makes claims of all kinds, bound and used by pods, as a cluster has them that is
// in use for some time.
func settle(ctx context.Context) {
	GinkgoHelper()
	class := Class(foreign, foreign, nil)
	static, wanted := Volume("static", OfClass("by-hand")), Claim(ClaimNamed("static"), InClass("by-hand"))
	create(ctx, class, static, wanted, &storagev1.CSIDriver{ObjectMeta: class.ObjectMeta})
	dynamic := []*corev1.PersistentVolumeClaim{
		Claim(ClaimNamed("local"), InClass(disks), Asking("8Mi")),
		Claim(ClaimNamed("nfs"), InClass(share), Asking("8Mi")),
		Claim(ClaimNamed("disk"), InClass(cloud)),
	}
	theirs := Claim(ClaimNamed("theirs"), InClass(foreign))
	pod := on(Pod("user", "", "local", "nfs", "disk", "theirs", "static"), "small")
	unused := Claim(ClaimNamed("unused"), InClass(share), Asking("8Mi"))
	create(ctx, dynamic[0], dynamic[1], dynamic[2], theirs, pod, unused)
	tidy(pod, dynamic[0], dynamic[1], dynamic[2], unused, wanted)
	DeferCleanup(func(ctx SpecContext) {
		remove(ctx, theirs, class, &storagev1.CSIDriver{ObjectMeta: class.ObjectMeta})
		eventuallyGone(ctx, theirs)
		remove(ctx, Volume(theirs.Spec.VolumeName))
		remove(ctx, static)
	})
	provisionForeign(ctx, theirs)
	eventuallyPlaced(ctx, pod)
	inUse := []*corev1.PersistentVolume{eventuallyBound(ctx, dynamic[2]), eventuallyBound(ctx, theirs)}
	attachForeign(ctx, attachmentOf(inUse[1], "small"))
	for _, pv := range inUse {
		eventuallyToldTo(ctx, "small", pv)
	}
	setInUse(ctx, "small", inUse...)
	DeferCleanup(func(ctx SpecContext) { setInUse(ctx, "small") })
	for _, claim := range append(dynamic, unused, wanted) {
		eventuallyBound(ctx, claim)
	}
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
	eventuallyToldTo(ctx, "large", volumes[2])

	remove(ctx, pod, wanted, now, local, disk)

	for _, pv := range volumes {
		eventuallyGone(ctx, pv)
	}
	eventuallyGone(ctx, wanted)
	remove(ctx, static)
	eventuallyGone(ctx, static)
	Expect(world.disks(ctx)).NotTo(ContainElement(volumes[2].Name))
}
