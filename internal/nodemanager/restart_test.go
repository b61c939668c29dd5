package nodemanager_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/guard"
)

var _ = Describe("The agent", func() {
	var w *world

	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	//proves:every/restart
	It("leaves everything mounted when it stops, and finds it when it starts", func(ctx context.Context) {
		w.register(ctx)
		stop := w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"), emptyDir("scratch", ""), emptyDir("fast", corev1.StorageMediumMemory))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		inMemory := filepath.Join(w.volumeDir(pod, "empty-dir", "fast"), "hello")
		Expect(os.WriteFile(inMemory, nil, 0o600)).To(Succeed())

		Expect(stop()).To(Succeed())
		before := w.mountsInPods()
		Expect(before).To(HaveLen(2))
		w.startAgent()

		Consistently(w.mountsInPods).Should(Equal(before))
		Expect(inMemory).To(BeAnExistingFile())
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.dataOf(claim)).To(BeADirectory())
	})

	It("keeps the volumes of a pod that ends while the agent is down until its containers have ended", func(ctx context.Context) {
		w.register(ctx)
		stop := w.startAgent()
		w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"), emptyDir("fast", corev1.StorageMediumMemory))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		setContainer(ctx, pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		Expect(stop()).To(Succeed())
		before := w.mountsInPods()

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		w.startAgent()

		Consistently(w.mountsInPods).Should(Equal(before))
		Expect(isGone(ctx, pod)()).To(BeFalse())
		setContainer(ctx, pod, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
	})

	It("unmounts nothing when it starts and the API server goes down, and what is to go once that is back", func(ctx context.Context) {
		w.register(ctx)
		stop := w.startAgent()
		w.boundClaim(ctx, "data")
		stays, goes := w.pod("stays", fromClaim("data")), w.pod("goes", fromClaim("data"))
		for _, pod := range []*corev1.Pod{stays, goes} {
			Expect(admin.Create(ctx, pod)).To(Succeed())
			Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		}
		Expect(stop()).To(Succeed())
		before := w.mountsInPods()
		line := w.overLine()

		w.startAgent()
		line.set(true)
		Expect(admin.Delete(ctx, goes)).To(Succeed())

		Consistently(w.mountsInPods).Should(Equal(before))
		line.set(false)
		Eventually(isGone(ctx, goes)).WithTimeout(time.Minute).Should(BeTrue())
		Expect(w.mountsInPods()).To(HaveLen(len(before) - 1))
		Consistently(w.mountsInPods).Should(HaveLen(len(before) - 1))
	})

	It("keeps the volumes of a running pod with a terminating claim, and mounts them for no other pod", func(ctx context.Context) {
		w.register(ctx)
		stop := w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		Expect(admin.Delete(ctx, claim)).To(Succeed()) // its protection keeps it

		w.startAgent()

		late := w.pod("late", fromClaim("data"))
		Expect(admin.Create(ctx, late)).To(Succeed())
		Eventually(volumesReady(ctx, late)).Should(HavePrefix("False Pending: volume data: claim " + w.namespace + "/data is being deleted"))
		Consistently(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.mountsInPods()).To(HaveLen(1))
	})

	//proves:every/restart
	It("tears down pods that were deleted while it was down", func(ctx context.Context) {
		w.register(ctx)
		stop := w.startAgent()
		claim := w.boundClaim(ctx, "data")
		pod := w.pod("web", fromClaim("data"), emptyDir("scratch", ""))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())

		w.startAgent()

		Eventually(w.podDirs).Should(BeEmpty())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.dataOf(claim)).To(BeADirectory())
	})

	It("distinguishes a pod from one that was created again under its name", func(ctx context.Context) {
		w.register(ctx)
		stop := w.startAgent()
		claim := w.boundClaim(ctx, "data")
		old := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, old)).To(Succeed())
		Eventually(volumesReady(ctx, old)).Should(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		Expect(admin.Delete(ctx, old, client.GracePeriodSeconds(0))).To(Succeed())
		pod := w.pod("web", fromClaim("data"))
		Expect(admin.Create(ctx, pod)).To(Succeed())

		w.startAgent()

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Eventually(w.podDirs).Should(ConsistOf(string(pod.UID)))
		Expect(w.mountsInPods()).To(ConsistOf(HaveField("Path", w.mountOf(pod, claim))))
	})

	//proves:every/restart
	It("finishes a teardown that was interrupted at any point", func(ctx context.Context) {
		w.register(ctx)
		uid := filepath.Join(w.root, "pods", "0b7e9a52-0000-4000-8000-000000000000")
		for _, dir := range []string{"kubernetes.io~csi/pvc-1/mount", "kubernetes.io~csi/pvc-2", "kubernetes.io~host-path", "kubernetes.io~empty-dir/.new-scratch"} {
			Expect(os.MkdirAll(filepath.Join(uid, "volumes", dir), 0o750)).To(Succeed())
		}
		w.startAgent()
		Eventually(w.podDirs).Should(BeEmpty())
	})

	It("waits for its node, and says what to do", func(ctx context.Context) {
		w.startAgent()
		pod := w.pod("web", emptyDir("scratch", ""))
		Consistently(w.podDirs).Should(BeEmpty())
		w.register(ctx)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
	})

	DescribeTable("stops on a node that has a kubelet", func(ctx context.Context, kubelet func(context.Context, *world)) {
		w.register(ctx)
		kubelet(ctx, w)
		ended := make(chan error, 1)
		waits := &guard.Guard{NodeName: w.node, Live: w.newManager().GetAPIReader(), Clock: realClock, Begin: func() error {
			Fail("pods are followed")
			return nil
		}}
		go func() { ended <- waits.Start(ctx) }()
		Eventually(ended).Should(Receive(MatchError(guard.ErrKubelet)))
	},
		Entry("which registered it", func(ctx context.Context, w *world) {
			node := &corev1.Node{}
			Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
			node.Status.NodeInfo.KubeletVersion = "v1.37.1"
			Expect(admin.Status().Update(ctx, node)).To(Succeed())
		}),
		Entry("which sends heartbeats", func(ctx context.Context, w *world) {
			now := metav1.NewMicroTime(time.Now())
			Expect(client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}))).To(Succeed())
			Expect(admin.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: w.node},
				Spec:       coordinationv1.LeaseSpec{RenewTime: &now},
			})).To(Succeed())
		}),
	)
})
