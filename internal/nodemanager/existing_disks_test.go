package nodemanager_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/volume"
)

const existingHandle = "projects/p/zones/z/disks/legacy"

// existingDisk is the disk, as it is attached to the node.
func (w *world) existingDisk() hotplug.Device {
	return hotplug.Device{Project: "p", Zone: "z", Instance: w.node, Name: "stowage-device", Image: filepath.Join(filepath.Dir(w.root), "legacy")}
}

// existingClaim creates a claim that is bound to a volume object of a disk with data.
func (w *world) existingClaim(ctx context.Context) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := w.claim(ctx, "data")
	disk := w.existingDisk()
	Expect(errors.Join(os.WriteFile(disk.Image, nil, 0o600), os.Truncate(disk.Image, diskBytes))).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(mount.UnmountBelow(mount.Kernel{}, w.root)).To(Succeed())
		Expect(w.cloud().Detach(ctx, disk)).To(Succeed())
	})
	w.bind(ctx, claim, corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "legacy"}})
	return claim
}

// attachExisting does all that makes the disk be attached.
func (w *world) attachExisting(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	disk := w.existingDisk()
	Expect(w.cloud().Attach(ctx, disk)).To(Succeed())
	w.attachmentOf(ctx, claim, existingHandle, disk.Name)
	node := w.readNode(ctx)
	changed := node.DeepCopy()
	changed.Status.VolumesAttached = []corev1.AttachedVolume{{Name: volume.UniqueName(stowagev1alpha1.GCEDriver, existingHandle)}}
	Expect(admin.Status().Patch(ctx, changed, client.MergeFrom(node))).To(Succeed())
}

var _ = Describe("A volume of source gcePersistentDisk", func() {
	var (
		w     *world
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
	)

	allow := func(ctx context.Context) {
		GinkgoHelper()
		allows := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: "allows-" + w.namespace}}
		allows.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: "p", Zones: []string{"z"}, ExistingDisks: true}
		Expect(admin.Create(ctx, allows)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, allows)).To(Succeed()) })
	}

	BeforeEach(func(ctx context.Context) {
		grant(ctx, "existing_disks.yaml")
		w = newWorld(ctx)
		Expect(admin.Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: w.node, Labels: map[string]string{stowagev1alpha1.TopologyNodeLabel: w.node}},
			Spec:       corev1.NodeSpec{ProviderID: "gce://p/z/" + w.node},
		})).To(Succeed())
		claim = w.existingClaim(ctx)
		pod = w.pod("web", fromClaim("data"))
	})

	//proves:gcePersistentDisk/claim
	It("is waited for, and is in use and mounted as soon as it is attached by Stowage's driver", func(ctx context.Context) {
		allow(ctx)
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("to be attached to node " + w.node))
		Expect(w.volumesInUse(ctx)()).To(BeEmpty())

		w.attachExisting(ctx, claim)

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.volumesInUse(ctx)()).To(ConsistOf(volume.UniqueName(stowagev1alpha1.GCEDriver, existingHandle)))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "hello"), []byte("world"), 0o600)).To(Succeed())

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Eventually(w.volumesInUse(ctx)).Should(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
	})

	//proves:gcePersistentDisk/refused
	It("is refused where no backend allows it, though it is attached", func(ctx context.Context) {
		w.startAgent()
		w.attachExisting(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(And(HavePrefix("False NotSupported"), ContainSubstring("set gce.existingDisks")))
		Consistently(w.mounts).Should(BeEmpty())
		Expect(w.volumesInUse(ctx)()).To(BeEmpty())
	})

	It("isn't mounted from a disk with another serial", func(ctx context.Context) {
		allow(ctx)
		w.startAgent()
		w.attachExisting(ctx, claim)
		serials, err := filepath.Glob(filepath.Join(w.deviceDir(), "serial", "*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(serials).To(HaveLen(1))
		Expect(os.WriteFile(serials[0], []byte("legacy"), 0o600)).To(Succeed())
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).WithTimeout(30 * time.Second).Should(ContainSubstring("it is another disk"))
		Expect(w.mounts()).To(BeEmpty())
	})
})
