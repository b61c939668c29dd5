package nodemanager_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("A volume for one pod alone", func() {
	var (
		w          *world
		claim      *corev1.PersistentVolumeClaim
		first, two *corev1.Pod
	)
	forOnePod := func(volume *corev1.PersistentVolume) {
		volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
		claim = w.claim(ctx, "data")
		w.bind(ctx, claim, w.nodeVolume(claim), forOnePod)
		first, two = w.pod("first", fromClaim("data")), w.pod("second", fromClaim("data"))
	})

	//proves:persistentVolumeClaim/ReadWriteOncePod
	It("is mounted for no second one until the first is gone", func(ctx context.Context) {
		w.startAgent()
		Expect(admin.Create(ctx, first)).To(Succeed())
		Eventually(volumesReady(ctx, first)).Should(HavePrefix("True"))

		Expect(admin.Create(ctx, two)).To(Succeed())

		Eventually(volumesReady(ctx, two)).Should(HavePrefix("False Pending: volume data: volume pvc-" + string(claim.UID) +
			" is ReadWriteOncePod, and pod first has it on this node"))
		Expect(w.mounts()).To(HaveLen(1))
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(volumesReady(ctx, two)).Should(HavePrefix("True"))
		Expect(w.mounts()).To(ConsistOf(HaveField("Path", w.mountOf(two, claim))))
	})

	It("isn't had by a pod that names a volume of its own after it", func(ctx context.Context) {
		folder := GinkgoT().TempDir()
		claim := w.claim(ctx, "of-the-node")
		volume := w.bind(ctx, claim, corev1.PersistentVolumeSource{HostPath: hostPath("", folder, corev1.HostPathDirectory).HostPath}, forOnePod)
		stranger := w.pod("stranger", hostPath(volume.Name, GinkgoT().TempDir(), corev1.HostPathDirectory))
		first = w.pod("first", fromClaim("of-the-node"))
		w.startAgent()
		Expect(admin.Create(ctx, stranger)).To(Succeed())
		Eventually(volumesReady(ctx, stranger)).Should(HavePrefix("True"))

		Expect(admin.Create(ctx, first)).To(Succeed())

		Eventually(volumesReady(ctx, first)).Should(HavePrefix("True"))
	})

	It("may be a single file of the node", func(ctx context.Context) {
		file := filepath.Join(GinkgoT().TempDir(), "file")
		Expect(os.WriteFile(file, []byte("hello"), 0o600)).To(Succeed())
		single := w.claim(ctx, "single")
		volume := w.bind(ctx, single, corev1.PersistentVolumeSource{HostPath: hostPath("", file, corev1.HostPathFile).HostPath}, forOnePod)
		first, two = w.pod("first", fromClaim("single")), w.pod("second", fromClaim("single"))
		w.startAgent()
		Expect(admin.Create(ctx, first)).To(Succeed())

		Eventually(volumesReady(ctx, first)).Should(HavePrefix("True"))
		Expect(os.ReadFile(w.volumeDir(first, "host-path", volume.Name))).To(BeEquivalentTo("hello"))
		Expect(admin.Create(ctx, two)).To(Succeed())
		Eventually(volumesReady(ctx, two)).Should(ContainSubstring("pod first has it"))
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(volumesReady(ctx, two)).Should(HavePrefix("True"))
	})

	It("is mounted for one of two that come at once", func(ctx context.Context) {
		Expect(admin.Create(ctx, first)).To(Succeed())
		Expect(admin.Create(ctx, two)).To(Succeed())

		w.startAgent()

		Eventually(w.mounts).Should(HaveLen(1))
		Consistently(w.mounts).Should(HaveLen(1))
	})

	//proves:persistentVolumeClaim/ReadWriteOncePod
	It("is still the first one's after a crash before it was mounted", func(ctx context.Context) {
		Expect(admin.Create(ctx, two)).To(Succeed())
		Expect(admin.Create(ctx, first)).To(Succeed())
		Expect(os.MkdirAll(filepath.Dir(w.mountOf(first, claim)), 0o750)).To(Succeed())

		w.startAgent()

		Eventually(volumesReady(ctx, first)).Should(HavePrefix("True"))
		Eventually(volumesReady(ctx, two)).Should(ContainSubstring("pod first has it"))
	})
})
