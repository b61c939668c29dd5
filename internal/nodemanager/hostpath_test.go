package nodemanager_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("A path of the node that a pod names", func() {
	var w *world

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
	})

	//proves:hostPath/type
	It("is mounted, whatever it is, and stays when the pod is gone", func(ctx context.Context) {
		w.startAgent()
		host := GinkgoT().TempDir()
		log := filepath.Join(host, "log")
		pod := w.pod("web", hostPath("dir", host, corev1.HostPathDirectory), hostPath("file", log, corev1.HostPathFileOrCreate))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(Equal("True Ready: all volumes are mounted (2)"))
		Expect(os.WriteFile(w.volumeDir(pod, "host-path", "file"), []byte("hello"), 0o600)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(w.volumeDir(pod, "host-path", "dir"), "log"))).To(BeEquivalentTo("hello"))

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.podDirs()).To(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
		Expect(os.ReadFile(log)).To(BeEquivalentTo("hello"))
	})

	It("is waited for, with an event, while it isn't of the kind that the pod asks for", func(ctx context.Context) {
		w.startAgent()
		path := filepath.Join(GinkgoT().TempDir(), "data")
		pod := w.pod("web", hostPath("data", path, corev1.HostPathDirectory))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume data: the volume's hostPath: " + path + " doesn't exist on this node"))

		Expect(os.Mkdir(path, 0o755)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
	})

	It("and the whole node can be had by a pod that others run beside", func(ctx context.Context) {
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod, other := w.pod("debug", hostPath("node", "/", corev1.HostPathDirectory)), w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, other)).To(Succeed())
		Eventually(volumesReady(ctx, other)).Should(HavePrefix("True"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))

		node := w.volumeDir(pod, "host-path", "node")
		Expect(filepath.Join(node, w.dataOf(claim))).To(BeADirectory())
		Expect(filepath.Join(node, "proc", "self", "status")).To(BeAnExistingFile())
		Expect(w.mounts()).NotTo(ContainElement(HaveField("Path", HavePrefix(filepath.Join(node, w.root)))))

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mountsInPods()).To(HaveLen(1))
		Expect("/proc/self/status").To(BeAnExistingFile())
	})
})

func hostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}
