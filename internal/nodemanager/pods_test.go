package nodemanager_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/patch"
)

var _ = Describe("A pod's volumes", func() {
	var w *world

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
	})

	//proves:every/ready persistentVolumeClaim/bound
	It("wait for their claim, and are mounted once it is bound", func(ctx context.Context) {
		w.startAgent()
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False Pending: volume data: waiting for claim " + w.namespace + "/data, which"))
		claim := w.claim(ctx, "data")
		Eventually(volumesReady(ctx, pod)).Should(Equal("False Pending: volume data: waiting for claim " + w.namespace + "/data to be bound"))

		w.bind(ctx, claim, w.nodeVolume(claim))

		Eventually(volumesReady(ctx, pod)).Should(Equal("True Ready: all volumes are mounted (1)"))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "hello"), []byte("world"), 0o600)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(w.dataOf(claim), "hello"))).To(BeEquivalentTo("world"))
		Consistently(eventsOf(ctx, pod, "SuccessfulMountVolume")).Should(BeEmpty())
	})

	It("have a line in the log when they are mounted, and none while they change in nothing that their volumes need", func(ctx context.Context) {
		said := gbytes.NewBuffer()
		GinkgoWriter.TeeTo(said)
		DeferCleanup(GinkgoWriter.ClearTeeWriters)
		lines := func() []string {
			return regexp.MustCompile(`"level"=0 "msg"="[^"]*".*"node"="`+w.node).FindAllString(string(said.Contents()), -1)
		}
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"), emptyDir("scratch", corev1.StorageMediumMemory))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Eventually(lines).Should(ConsistOf(HavePrefix(`"level"=0 "msg"="mounted"`), ContainSubstring(`"volume"="`+claim.Spec.VolumeName)))

		for pass := range 3 {
			patch := client.RawPatch(apitypes.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/pass": "%d"}}}`, pass))
			Expect(admin.Patch(ctx, pod, patch)).To(Succeed())
		}

		Consistently(lines).Should(HaveLen(2))
	})

	It("are reported beside what others report of the pod", func(ctx context.Context) {
		w.startAgent()
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		others := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
		Expect(admin.Status().Patch(ctx, pod.DeepCopy(), patch.PodCondition(pod, others))).To(Succeed())
		w.boundClaim(ctx, "data")
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))

		Expect(admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		Expect(pod.Status.Conditions).To(ContainElement(HaveField("Reason", "ContainersNotReady")))
	})

	It("are never reported in the status of a later pod of that name", func(ctx context.Context) {
		earlier, later := w.pod("web"), w.pod("web")
		Expect(admin.Create(ctx, earlier)).To(Succeed())
		Expect(admin.Delete(ctx, earlier.DeepCopy(), client.GracePeriodSeconds(0))).To(Succeed())
		Expect(admin.Create(ctx, later)).To(Succeed())

		ready := corev1.PodCondition{Type: stowagev1alpha1.VolumesReadyCondition, Status: corev1.ConditionTrue}
		err := admin.Status().Patch(ctx, earlier.DeepCopy(), patch.PodCondition(earlier, ready))

		Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
		Expect(volumesReady(ctx, later)()).To(BeEmpty())
	})

	//proves:every/end
	It("are unmounted, with their data kept, before the pod's deletion ends", func(ctx context.Context) {
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "hello"), []byte("world"), 0o600)).To(Succeed())

		Expect(admin.Delete(ctx, pod)).To(Succeed())

		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.podDirs()).To(BeEmpty())
		Expect(os.ReadFile(filepath.Join(w.dataOf(claim), "hello"))).To(BeEquivalentTo("world"))
	})

	//proves:every/end
	It("stay while a container runs, whatever the pod's phase is", func(ctx context.Context) {
		w.startAgent()
		w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		setContainer(ctx, pod, running)

		Expect(admin.Delete(ctx, pod)).To(Succeed())

		Consistently(w.mountsInPods).Should(HaveLen(1))
		Expect(isGone(ctx, pod)()).To(BeFalse())
		setContainer(ctx, pod, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
	})

	It("are unmounted when the pod is finished, which stays", func(ctx context.Context) {
		w.startAgent()
		w.boundClaim(ctx, "data")
		pod := w.pod("job", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))

		finished := pod.DeepCopy()
		finished.Status.Phase = corev1.PodSucceeded
		Expect(admin.Status().Patch(ctx, finished, client.StrategicMergeFrom(pod))).To(Succeed())

		Eventually(w.podDirs).Should(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
		Expect(isGone(ctx, pod)()).To(BeFalse())
	})

	//proves:persistentVolumeClaim/readOnly hostPath/claim local/shown
	It("are of every type that is served, read-only where the pod says so", func(ctx context.Context) {
		w.startAgent()
		host, prepared, readOnly := GinkgoT().TempDir(), GinkgoT().TempDir(), fromClaim("readonly")
		readOnly.PersistentVolumeClaim.ReadOnly = true
		hostVolume := w.bind(ctx, w.claim(ctx, "host"), corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}})
		localVolume := w.bind(ctx, w.claim(ctx, "local"), corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: prepared}}, onNode(w.node))
		written := w.boundClaim(ctx, "readonly")
		pod := w.pod("web", fromClaim("host"), fromClaim("local"), readOnly, emptyDir("scratch", ""), emptyDir("fast", corev1.StorageMediumMemory))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(Equal("True Ready: all volumes are mounted (5)"))
		for source, dir := range map[string]string{
			host:     w.volumeDir(pod, "host-path", hostVolume.Name),
			prepared: w.volumeDir(pod, "local-volume", localVolume.Name),
		} {
			Expect(os.WriteFile(filepath.Join(dir, "hello"), nil, 0o600)).To(Succeed())
			Expect(filepath.Join(source, "hello")).To(BeAnExistingFile())
		}
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, written), "hello"), nil, 0o600)).To(MatchError(ContainSubstring("read-only file system")))
		for _, name := range []string{"scratch", "fast"} {
			Expect(os.WriteFile(filepath.Join(w.volumeDir(pod, "empty-dir", name), "hello"), nil, 0o600)).To(Succeed())
		}

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.podDirs()).To(BeEmpty())
		Expect(filepath.Join(host, "hello")).To(BeAnExistingFile())
		Expect(filepath.Join(prepared, "hello")).To(BeAnExistingFile())
	})

	//proves:every/ready refused/reported
	It("of an unsupported type are reported, and don't hold up the others", func(ctx context.Context) {
		w.startAgent()
		w.boundClaim(ctx, "data")
		disk := corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{
			TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk",
		}}}
		pod := w.pod("web", disk, fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		const note = "volume disk: volume of type iscsi is not supported by this version of Stowage"
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False NotSupported: " + note))
		Eventually(w.mountsInPods).Should(HaveLen(1))
		Eventually(eventsOf(ctx, pod, "FailedMount")).Should(ConsistOf(HavePrefix(note)))
	})

	//proves:persistentVolumeClaim/nodeAffinity
	It("aren't mounted on a node that they don't belong to", func(ctx context.Context) {
		w.startAgent()
		claim := w.claim(ctx, "data")
		w.bind(ctx, claim, w.nodeVolume(claim), onNode("elsewhere"))
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("can't be used on node " + w.node))
		Expect(w.mounts()).To(BeEmpty())
	})

	//proves:csi/local-Directory
	It("aren't mounted from outside the base directory, nor from another volume's", func(ctx context.Context) {
		w.startAgent()
		canary := GinkgoT().TempDir()
		for name, path := range map[string]string{"outside": canary, "dots": w.base + "/../dots", "other": w.base} {
			claim := w.claim(ctx, name)
			source := w.nodeVolume(claim)
			source.CSI.VolumeAttributes["path"] = path
			if name == "outside" {
				source.CSI.VolumeHandle = filepath.Base(canary)
			}
			w.bind(ctx, claim, source)
		}
		pod := w.pod("web", fromClaim("outside"), fromClaim("dots"), fromClaim("other"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(And(
			ContainSubstring("volume outside: the volume isn't below this node's --local-base"),
			ContainSubstring("volume dots: the volume's path"), ContainSubstring("volume other: the volume's path")))
		Expect(w.mounts()).To(BeEmpty())
	})

	//proves:ephemeral/claim
	It("that are ephemeral are mounted from the claim that the pod owns, and from no other of that name", func(ctx context.Context) {
		w.startAgent()
		pod := w.pod("web", ephemeral("scratch"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		claim := w.boundClaim(ctx, "web-scratch")
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("web-scratch exists and was not made for this pod"))

		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
		Expect(admin.Update(ctx, claim)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(Equal("True Ready: all volumes are mounted (1)"))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "hello"), nil, 0o600)).To(Succeed())
		Expect(filepath.Join(w.dataOf(claim), "hello")).To(BeAnExistingFile())
	})

	//proves:persistentVolumeClaim/bound
	It("are mounted once where the pod names a claim twice", func(ctx context.Context) {
		w.startAgent()
		w.boundClaim(ctx, "data")
		again := fromClaim("data")
		again.Name, again.PersistentVolumeClaim.ReadOnly = "again", true
		pod := w.pod("web", again, fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(Equal("True Ready: all volumes are mounted (2)"))
		Expect(w.mountsInPods()).To(ConsistOf(HaveField("Access", mount.ReadWrite)))
	})

	It("with files in their unmounted directory keep the pod, and the files", func(ctx context.Context) {
		w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		stray := filepath.Join(w.mountOf(pod, claim), "stray")
		Eventually(func() error {
			_ = mount.Kernel{}.Unmount(w.mountOf(pod, claim))
			Expect(os.WriteFile(stray, nil, 0o600)).To(Succeed())
			// Where the agent mounted the volume again in between, the file is in the volume.
			return os.Remove(filepath.Join(w.dataOf(claim), "stray"))
		}).Should(MatchError(os.ErrNotExist))

		Expect(admin.Delete(ctx, pod)).To(Succeed())

		Eventually(eventsOf(ctx, pod, "FailedUnmount")).Should(ContainElement(ContainSubstring("directory not empty")))
		Expect(isGone(ctx, pod)()).To(BeFalse())
		Expect(stray).To(BeAnExistingFile())
		Expect(os.Remove(stray)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
	})
})

func onNode(name string) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: "topology.stowage.dev/node", Operator: corev1.NodeSelectorOpIn, Values: []string{name},
			}}}},
		}}
	}
}

// setContainer does what a container runtime does.
func setContainer(ctx context.Context, pod *corev1.Pod, state corev1.ContainerState) {
	GinkgoHelper()
	read := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(pod), read)).To(Succeed())
	changed := read.DeepCopy()
	changed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state}}
	Expect(admin.Status().Patch(ctx, changed, client.StrategicMergeFrom(read))).To(Succeed())
}
