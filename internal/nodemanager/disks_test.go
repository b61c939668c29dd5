package nodemanager_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/volume"
)

// diskBytes is what a disk has.
const diskBytes = 16 * mebibyte

// deviceDir is where the node finds its disks.
func (w *world) deviceDir() string {
	return filepath.Join(filepath.Dir(w.root), "dev", "p", "z", w.node)
}

func (w *world) cloud() *hotplug.Loop {
	return hotplug.NewLoop(hotplug.Folder(filepath.Join(filepath.Dir(w.root), "dev")))
}

// cloudDisk is a claim's disk in the cloud, as the node's instance sees it.
func (w *world) cloudDisk(claim *corev1.PersistentVolumeClaim) hotplug.Device {
	name := "pvc-" + string(claim.UID)
	return hotplug.Device{Project: "p", Zone: "z", Instance: w.node, Name: name, Image: filepath.Join(filepath.Dir(w.root), name)}
}

// diskClaim creates a claim with an empty disk, which is attached to nothing.
func (w *world) diskClaim(ctx context.Context, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		Skip("NOT RUN: mkfs.ext4 is missing: install e2fsprogs")
	}
	claim := w.claim(ctx, name)
	disk := w.cloudDisk(claim)
	Expect(errors.Join(os.WriteFile(disk.Image, nil, 0o600), os.Truncate(disk.Image, diskBytes))).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(mount.UnmountBelow(mount.Kernel{}, w.root)).To(Succeed())
		Expect(w.cloud().Detach(ctx, disk)).To(Succeed())
	})
	w.bind(ctx, claim, corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.GCEDriver, VolumeHandle: disk.Name, FSType: "ext4",
	}})
	return claim
}

// attachment is the claim's VolumeAttachment, as the manager makes and completes it.
func (w *world) attachment(ctx context.Context, claim *corev1.PersistentVolumeClaim) *storagev1.VolumeAttachment {
	GinkgoHelper()
	name := w.cloudDisk(claim).Name
	return w.attachmentOf(ctx, claim, name, name)
}

// attachmentOf is that of a volume that the driver knows by a handle, attached as a device.
func (w *world) attachmentOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, handle, device string) *storagev1.VolumeAttachment {
	GinkgoHelper()
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(stowagev1alpha1.GCEDriver, handle, w.node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: stowagev1alpha1.GCEDriver, NodeName: w.node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pvc-" + string(claim.UID))},
		},
	}
	Expect(admin.Create(ctx, object)).To(Succeed())
	object.Status = storagev1.VolumeAttachmentStatus{
		Attached: true, AttachmentMetadata: map[string]string{backend.DeviceMetadata: device, backend.SerialMetadata: device},
	}
	Expect(admin.Status().Update(ctx, object)).To(Succeed())
	return object
}

// sayAttached writes the node's volumesAttached, as the manager does last.
func (w *world) sayAttached(ctx context.Context, claims ...*corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	node := w.readNode(ctx)
	changed := node.DeepCopy()
	changed.Status.VolumesAttached = nil
	for _, claim := range claims {
		changed.Status.VolumesAttached = append(changed.Status.VolumesAttached, corev1.AttachedVolume{Name: w.statusName(claim)})
	}
	Expect(admin.Status().Patch(ctx, changed, client.MergeFrom(node))).To(Succeed())
}

func (w *world) readNode(ctx context.Context) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
	return node
}

func (w *world) statusName(claim *corev1.PersistentVolumeClaim) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/gce.stowage.dev^pvc-" + string(claim.UID))
}

func (w *world) volumesInUse(ctx context.Context) func() []corev1.UniqueVolumeName {
	return func() []corev1.UniqueVolumeName {
		node := &corev1.Node{}
		if err := admin.Get(ctx, client.ObjectKey{Name: w.node}, node); err != nil {
			return nil
		}
		return node.Status.VolumesInUse
	}
}

// attach does all that makes a disk be attached.
func (w *world) attach(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Expect(w.cloud().Attach(ctx, w.cloudDisk(claim))).To(Succeed())
	w.attachment(ctx, claim)
	w.sayAttached(ctx, claim)
}

var _ = Describe("A volume that is a disk", func() {
	var (
		w     *world
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
	)

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
		claim = w.diskClaim(ctx, "data")
		pod = w.pod("web", fromClaim("data"))
	})

	//proves:csi/attached
	It("is waited for, and is said to be in use and mounted as soon as it is attached", func(ctx context.Context) {
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(Equal("False Pending: volume data: waiting for volume pvc-" + string(claim.UID) + " to be attached to node " + w.node))
		Expect(w.volumesInUse(ctx)()).To(BeEmpty(), "it may be on its way out, for a pod that was here before")
		Expect(w.readNode(ctx).Annotations).To(HaveKeyWithValue(attach.ManagedAnnotation, "true"))

		w.attach(ctx, claim)

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.volumesInUse(ctx)()).To(ConsistOf(w.statusName(claim)))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "hello"), []byte("world"), 0o600)).To(Succeed())
		Expect(eventsOf(ctx, pod, "FailedMount")()).To(BeEmpty())
	})

	It("isn't touched while only the VolumeAttachment, or only the node, says that it is attached", func(ctx context.Context) {
		Expect(w.cloud().Attach(ctx, w.cloudDisk(claim))).To(Succeed())
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())
		object := w.attachment(ctx, claim)
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("to be attached"))
		Consistently(w.mounts).Should(BeEmpty())

		object.Status.Attached = false
		Expect(admin.Status().Update(ctx, object)).To(Succeed())
		w.sayAttached(ctx, claim)

		Consistently(w.mounts).Should(BeEmpty())
	})

	//proves:csi/attached
	It("stays in use until it is unmounted, and others' entries stay for good", func(ctx context.Context) {
		node := w.readNode(ctx)
		changed := node.DeepCopy()
		changed.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/gce.stowage.dev^gone", "example.com/other"}
		Expect(admin.Status().Patch(ctx, changed, client.MergeFrom(node))).To(Succeed())
		w.startAgent()
		w.attach(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Eventually(w.volumesInUse(ctx)).Should(ConsistOf(corev1.UniqueVolumeName("example.com/other"), w.statusName(claim)))
		kept, err := os.Create(filepath.Join(w.mountOf(pod, claim), "open"))
		Expect(err).NotTo(HaveOccurred())

		Expect(admin.Delete(ctx, pod)).To(Succeed())

		Eventually(eventsOf(ctx, pod, "FailedUnmount")).ShouldNot(BeEmpty())
		Expect(w.volumesInUse(ctx)()).To(ContainElement(w.statusName(claim)))
		Expect(kept.Close()).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Eventually(w.volumesInUse(ctx)).Should(ConsistOf(corev1.UniqueVolumeName("example.com/other")))
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.cloud().Detach(ctx, w.cloudDisk(claim))).To(Succeed())
	})

	It("is in use from the start of an agent that finds it mounted, though the node's status was lost", func(ctx context.Context) {
		stop := w.startAgent()
		w.attach(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		w.loseStatus(ctx)

		w.startAgent()

		Eventually(w.volumesInUse(ctx)).Should(ConsistOf(w.statusName(claim)))
		w.loseStatus(ctx)
		Eventually(w.volumesInUse(ctx)).Should(ConsistOf(w.statusName(claim)))
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Eventually(w.volumesInUse(ctx)).Should(BeEmpty())
	})

	It("isn't in use any more after the pod went while the agent was down", func(ctx context.Context) {
		stop := w.startAgent()
		w.attach(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())

		w.startAgent()

		Eventually(w.volumesInUse(ctx)).Should(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
		Expect(filepath.Glob(filepath.Join(w.root, "staged", stowagev1alpha1.GCEDriver, "*"))).To(BeEmpty())
	})

	It("isn't in use any more when a pod goes that waited for it in vain", func(ctx context.Context) {
		w.startAgent()
		w.sayAttached(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(w.volumesInUse(ctx)).ShouldNot(BeEmpty())

		Expect(admin.Delete(ctx, pod)).To(Succeed())

		Eventually(w.volumesInUse(ctx)).Should(BeEmpty())
	})

	It("stays in use, once it was reported to be, though the Node says that it isn't attached", func(ctx context.Context) {
		w.startAgent()
		w.sayAttached(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(w.volumesInUse(ctx)).ShouldNot(BeEmpty())

		w.sayAttached(ctx)

		Consistently(w.volumesInUse(ctx)).Should(ConsistOf(w.statusName(claim)))
	})

	It("is reported with all others of its pod in one write", func(ctx context.Context) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, fromClaim("more"), fromClaim("most"))
		more, most := w.diskClaim(ctx, "more"), w.diskClaim(ctx, "most")
		var seen [][]corev1.UniqueVolumeName
		look := func() int {
			names := w.volumesInUse(ctx)()
			if len(seen) == 0 || !slices.Equal(seen[len(seen)-1], names) {
				seen = append(seen, names)
			}
			return len(names)
		}
		w.sayAttached(ctx, claim, more, most)
		look()
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(look).WithPolling(1).Should(Equal(3))

		Expect(seen).To(HaveLen(2))
		Expect(seen[1]).To(ConsistOf(w.statusName(claim), w.statusName(more), w.statusName(most)))
	})

	It("that vanishes from its pod is reported, and comes back", func(ctx context.Context) {
		w.startAgent()
		w.attach(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		w.pretendGone(claim)
		object := &storagev1.VolumeAttachment{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: volume.AttachmentName(stowagev1alpha1.GCEDriver, "pvc-"+string(claim.UID), w.node)}, object)).To(Succeed())
		object.Status.Attached = false
		Expect(admin.Status().Update(ctx, object)).To(Succeed())

		touch(filepath.Join(w.deviceDir(), "something"))

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume data: the volume's disk is gone from this node"))
		Eventually(eventsOf(ctx, pod, "FailedMount")).Should(HaveLen(1))
		Expect(w.volumesInUse(ctx)()).To(ContainElement(w.statusName(claim)))
		object.Status.Attached = true
		Expect(admin.Status().Update(ctx, object)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.mounts()).To(HaveLen(2))
	})
})

// loseStatus makes the node one that was just made again.
func (w *world) loseStatus(ctx context.Context) {
	GinkgoHelper()
	node := w.readNode(ctx)
	changed := node.DeepCopy()
	changed.Status.VolumesInUse = nil
	Expect(admin.Status().Patch(ctx, changed, client.MergeFrom(node))).To(Succeed())
}

// pretendGone makes the disk that is mounted one that was there before: neither a loop
// device nor a guest's disk can be taken from under a mount.
func (w *world) pretendGone(claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	sum := sha256.Sum256([]byte("pvc-" + string(claim.UID)))
	path := filepath.Join(w.root, "staged", stowagev1alpha1.GCEDriver, hex.EncodeToString(sum[:]), "disk")
	record, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	changed := strings.Replace(string(record), `"sequence":"`, `"sequence":"9`, 1)
	Expect(changed).NotTo(Equal(string(record)))
	Expect(os.WriteFile(path, []byte(changed), 0o600)).To(Succeed())
}

func touch(path string) {
	GinkgoHelper()
	Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
}
