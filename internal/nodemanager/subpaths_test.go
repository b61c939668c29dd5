package nodemanager_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
)

var _ = Describe("Parts of volumes", func() {
	var w *world

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
	})

	//proves:every/subPath
	It("are mounted for each container that asks, and unmounted before the volume, with their data kept", func(ctx context.Context) {
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := podWithMounts(w.pod("web", fromClaim("data"), emptyDir("scratch", "")), part("data", "/logs", "logs/today"), byName("data"), part("scratch", "/tmp", "tmp"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(Equal("True Ready: all volumes are mounted (2)"))
		volume := "pvc-" + string(claim.UID)
		for target, path := range map[string]string{
			w.partOf(pod, volume, "0"):    filepath.Join(w.dataOf(claim), "logs", "today"),
			w.partOf(pod, volume, "1"):    filepath.Join(w.dataOf(claim), "web"),
			w.partOf(pod, "scratch", "2"): filepath.Join(w.volumeDir(pod, "empty-dir", "scratch"), "tmp"),
		} {
			Expect(os.WriteFile(filepath.Join(target, "hello"), nil, 0o600)).To(Succeed())
			Expect(filepath.Join(path, "hello")).To(BeAnExistingFile())
		}

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.podDirs()).To(BeEmpty())
		Expect(filepath.Join(w.dataOf(claim), "logs", "today", "hello")).To(BeAnExistingFile())
	})

	It("stay as they are when the agent restarts, and so do the descriptions of containers", func(ctx context.Context) {
		stop := w.startAgent()
		w.boundClaim(ctx, "data")
		pod := podWithMounts(w.pod("web", fromClaim("data")), part("data", "/logs", "logs"), byName("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		mounts, written := w.mountsInPods(), w.writtenOf(pod)
		Expect(mounts).To(HaveLen(3))

		w.startAgent()

		Consistently(w.mountsInPods).Should(Equal(mounts))
		Expect(w.writtenOf(pod)).To(Equal(written))
	})

	It("of a pod that was deleted while the agent was down are found and unmounted", func(ctx context.Context) {
		stop := w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := podWithMounts(w.pod("web", fromClaim("data"), emptyDir("fast", corev1.StorageMediumMemory)), part("data", "/logs", "logs"), part("fast", "/tmp", "tmp"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		// One volume is unmounted by hand, and its part is still mounted.
		Expect(mount.Kernel{}.Unmount(w.mountOf(pod, claim))).To(Succeed())

		w.startAgent()

		Eventually(w.podDirs).Should(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
		Expect(filepath.Join(w.dataOf(claim), "logs")).To(BeADirectory())
	})

	//proves:every/subPath-symlinks
	It("that lead out of the volume are refused, and mounted once they don't", func(ctx context.Context) {
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		outside, link := GinkgoT().TempDir(), filepath.Join(w.dataOf(claim), "logs")
		Expect(os.Symlink(outside, link)).To(Succeed())
		pod := podWithMounts(w.pod("web", fromClaim("data")), part("data", "/logs", "logs/today"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume data: subPath logs/today: a symlink on the way there leads out of the volume"))
		Expect(os.ReadDir(outside)).To(BeEmpty())
		Expect(w.descriptionOf(pod)).NotTo(BeAnExistingFile())
		Expect(os.Remove(link)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
	})

	It("with a variable that doesn't exist are reported", func(ctx context.Context) {
		w.startAgent()
		w.boundClaim(ctx, "data")
		mount := part("data", "/logs", "")
		mount.SubPathExpr = "logs/$(TEAM)"
		pod := podWithMounts(w.pod("web", fromClaim("data")), mount)
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(Equal("False FailedMount: volume data: subPathExpr logs/$(TEAM): " +
			"variable TEAM isn't set, or is empty: set it in env or envFrom of container main"))
	})

	It("that were removed from the volume are mounted again once their container doesn't run", func(ctx context.Context) {
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := podWithMounts(w.pod("web", fromClaim("data")), part("data", "/logs", "logs"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		setContainer(ctx, pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		before := w.mountsInPods()

		Expect(os.Remove(filepath.Join(w.dataOf(claim), "logs"))).To(Succeed())

		removed := func() []mount.Point {
			mounts := w.mountsInPods()
			for i := range mounts {
				mounts[i].Root, mounts[i].RootDeleted = before[i].Root, before[i].RootDeleted
			}
			return mounts
		}
		Consistently(removed).Should(Equal(before))
		setContainer(ctx, pod, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		Eventually(w.mountsInPods).Should(And(HaveLen(2), HaveEach(HaveField("RootDeleted", false))))
		Expect(filepath.Join(w.dataOf(claim), "logs")).To(BeADirectory())
	})

	//proves:objects/updates
	It("of a configMap keep their content while their container runs, and the next container has the new content", func(ctx context.Context) {
		w.startAgent()
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}, Data: map[string]string{"key": "old"}}
		Expect(admin.Create(ctx, configMap)).To(Succeed())
		volume := corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
		volume.ConfigMap.Name = "settings"
		pod := podWithMounts(w.pod("web", volume), part("settings", "/etc/key", "key"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		setContainer(ctx, pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})

		configMap.Data["key"] = "new"
		Expect(admin.Update(ctx, configMap)).To(Succeed())

		shows := func(path string) func() string {
			return func() string { content, _ := os.ReadFile(path); return string(content) }
		}
		Eventually(shows(filepath.Join(w.volumeDir(pod, "configmap", "settings"), "key"))).Should(Equal("new"))
		Consistently(shows(w.partOf(pod, "settings", "0"))).Should(Equal("old"))
		setContainer(ctx, pod, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		Eventually(shows(w.partOf(pod, "settings", "0"))).Should(Equal("new"))
	})

	It("that a configMap hasn't aren't made in it", func(ctx context.Context) {
		w.startAgent()
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}}
		Expect(admin.Create(ctx, configMap)).To(Succeed())
		volume := corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
		volume.ConfigMap.Name = "settings"
		pod := podWithMounts(w.pod("web", volume), part("settings", "/etc/key", "key"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume settings: subPath key isn't in the volume: add it there"))
		configMap.Data = map[string]string{"key": "here"}
		Expect(admin.Update(ctx, configMap)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
	})
})

// podWithMounts is a pod with a container main that has these volumeMounts.
func podWithMounts(pod *corev1.Pod, mounts ...corev1.VolumeMount) *corev1.Pod {
	pod.Spec.Containers[0].VolumeMounts = mounts
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	return pod
}

func part(volume, at, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: at, SubPath: path}
}

// byName is the part of a volume that has the pod's name.
func byName(volume string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: "/mine", SubPathExpr: "$(POD)"}
}

// partOf is where a part of a volume is mounted for container main.
func (w *world) partOf(pod *corev1.Pod, volume, index string) string {
	return filepath.Join(w.root, "pods", string(pod.UID), "volume-subpaths", volume, "main", index)
}

// descriptionOf is the file with the description of container main.
func (w *world) descriptionOf(pod *corev1.Pod) string {
	return filepath.Join(w.root, "pods", string(pod.UID), "containers", "main", "mounts.json")
}

func (w *world) writtenOf(pod *corev1.Pod) string {
	GinkgoHelper()
	content, err := os.ReadFile(w.descriptionOf(pod))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}
