package nodemanager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilexec "k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

const (
	mebibyte = 1 << 20
	// smallest is what an xfs needs.
	smallest = 300 * mebibyte
)

// imageVolume makes an image as the local backend does, and is its source. Xfs is the
// type that every root may grow.
func (w *world) imageVolume(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeSource {
	GinkgoHelper()
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		Skip("NOT RUN: mkfs.xfs is missing: install xfsprogs")
	}
	source := w.nodeVolume(claim)
	source.CSI.VolumeAttributes[stowagev1alpha1.LayoutAttribute] = string(stowagev1alpha1.LayoutImage)
	Expect(os.WriteFile(w.imageOf(claim), nil, 0o600)).To(Succeed())
	w.resizeImage(claim, smallest)
	Expect(filesystem.NewFileSystems(utilexec.New()).Format(context.Background(), w.imageOf(claim), "xfs", smallest)).To(Succeed())
	return source
}

func (w *world) imageOf(claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(w.dataOf(claim), stowagev1alpha1.ImageFile)
}

func (w *world) resizeImage(claim *corev1.PersistentVolumeClaim, bytes int64) {
	GinkgoHelper()
	Expect(os.Truncate(w.imageOf(claim), bytes)).To(Succeed())
}

// IsAttached reports whether the image of a claim has a loop device.
func (w *world) isAttached(claim *corev1.PersistentVolumeClaim) bool {
	GinkgoHelper()
	image, err := os.Open(w.imageOf(claim))
	Expect(err).NotTo(HaveOccurred())
	defer image.Close()
	loop, err := loopdev.Find(image)
	Expect(err).NotTo(HaveOccurred())
	if loop == nil {
		return false
	}
	Expect(loop.Close()).To(Succeed())
	return true
}

// deviceOf is where a pod sees a claim's volume as a device.
func (w *world) deviceOf(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(w.root, "pods", string(pod.UID), "volumeDevices", "kubernetes.io~csi", "pvc-"+string(claim.UID))
}

func asBlock(volume *corev1.PersistentVolume) {
	volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
}

// promise gives a claim's volume more, and leaves the rest to its node.
func (w *world) promise(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, bytes int64) {
	GinkgoHelper()
	size := corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}
	volume.Spec.Capacity = size
	Expect(admin.Update(ctx, volume)).To(Succeed())
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(smallest, resource.BinarySI)}
	claim.Status.AllocatedResources = size
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending,
	}
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue},
	}
	Expect(admin.Status().Update(ctx, claim)).To(Succeed())
}

// sizeOf is what a claim says that it has.
func sizeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) func() string {
	return func() string {
		read := &corev1.PersistentVolumeClaim{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(claim), read); err != nil {
			return err.Error()
		}
		if len(read.Status.Conditions)+len(read.Status.AllocatedResourceStatuses) > 0 {
			return "not finished"
		}
		return read.Status.Capacity.Storage().String()
	}
}

func roomIn(path string) int64 {
	GinkgoHelper()
	var stat unix.Statfs_t
	Expect(unix.Statfs(path, &stat)).To(Succeed())
	return int64(stat.Blocks) * stat.Frsize
}

var _ = Describe("A volume that is an image", func() {
	var (
		w     *world
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
	)

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
		claim = w.claim(ctx, "data")
		pod = w.pod("web", fromClaim("data"))
	})

	//proves:csi/crash
	It("survives a restart of the agent, and is detached when its pod is gone", func(ctx context.Context) {
		stop := w.startAgent()
		w.bind(ctx, claim, w.imageVolume(claim))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "hello"), []byte("world"), 0o600)).To(Succeed())
		Expect(stop()).To(Succeed())
		before := w.mounts()

		w.startAgent()

		Consistently(w.mounts).Should(Equal(before))
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.isAttached(claim)).To(BeFalse())
		Expect(filepath.Glob(filepath.Join(w.root, "plugins", "kubernetes.io", "csi", "*", "*"))).To(BeEmpty())
	})

	It("is a device in the kubelet's place, and goes though the agent was down when its pod went", func(ctx context.Context) {
		stop := w.startAgent()
		w.bind(ctx, claim, w.imageVolume(claim), asBlock)
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: pod.Spec.Volumes[0].Name, DevicePath: "/dev/xvda"}}
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		shown, err := os.Stat(w.deviceOf(pod, claim))
		Expect(err).NotTo(HaveOccurred())
		Expect(shown.Mode() & os.ModeDevice).NotTo(BeZero())
		numbers := shown.Sys().(*syscall.Stat_t).Rdev
		Expect(w.writtenOf(pod)).To(MatchJSON(fmt.Sprintf(`{"mounts": [], "additionalGids": [], "devices": [
			{"path": "/dev/xvda", "type": "b", "major": %d, "minor": %d, "source": %q, "access": "rwm"}]}`,
			unix.Major(numbers), unix.Minor(numbers), w.deviceOf(pod, claim))))
		Expect(stop()).To(Succeed())
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())

		w.startAgent()

		Eventually(w.podDirs).Should(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.isAttached(claim)).To(BeFalse())
	})

	//proves:csi/expansion
	It("grows for a claim that waits for its node, with the node's own credential", func(ctx context.Context) {
		volume := w.bind(ctx, claim, w.imageVolume(claim))
		w.resizeImage(claim, 2*smallest)
		w.promise(ctx, claim, volume, 2*smallest)
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(sizeOf(ctx, claim)).Should(Equal("600Mi"))

		Expect(roomIn(w.mountOf(pod, claim))).To(BeNumerically(">", smallest*3/2))
		Eventually(eventsOf(ctx, pod, "FileSystemResizeSuccessful")).Should(HaveLen(1))
	})

	It("goes on growing after a restart of the agent", func(ctx context.Context) {
		stop := w.startAgent()
		volume := w.bind(ctx, claim, w.imageVolume(claim))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		w.resizeImage(claim, 2*smallest)
		w.promise(ctx, claim, volume, 2*smallest)

		w.startAgent()

		Eventually(sizeOf(ctx, claim)).Should(Equal("600Mi"))
		Expect(roomIn(w.mountOf(pod, claim))).To(BeNumerically(">", smallest*3/2))
	})

	It("is never formatted for its pod, though it holds no file system", func(ctx context.Context) {
		w.bind(ctx, claim, w.imageVolume(claim))
		held := make([]byte, smallest)
		copy(held[mebibyte:], "rows of a database")
		Expect(os.WriteFile(w.imageOf(claim), held, 0o600)).To(Succeed())
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume data: the volume's image has no file system: it is never formatted"))

		Expect(os.ReadFile(w.imageOf(claim))).To(Equal(held))
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.isAttached(claim)).To(BeFalse())
	})

	It("is reported on the pod when it is removed from the disk, and cleaned up after it", func(ctx context.Context) {
		stop := w.startAgent()
		w.bind(ctx, claim, w.imageVolume(claim))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		kept := filepath.Join(w.base, "kept")
		Expect(errors.Join(os.Link(w.imageOf(claim), kept), os.Remove(w.imageOf(claim)))).To(Succeed())
		Expect(stop()).To(Succeed())

		w.startAgent()

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume data: the volume's image was removed"))
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(os.Rename(kept, w.imageOf(claim))).To(Succeed())
		Expect(w.isAttached(claim)).To(BeFalse())
	})
})
