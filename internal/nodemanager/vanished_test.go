package nodemanager_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-dev/stowage/internal/mount"
)

// passes counts how often this program reconciled pods.
func passes() float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	count := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "pod-volumes" {
					count += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return count
}

var _ = Describe("The mount table", func() {
	var (
		w     *world
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
	)

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
		claim = w.boundClaim(ctx, "data")
		pod = w.pod("web", fromClaim("data"))
		w.startAgent()
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(os.WriteFile(filepath.Join(w.dataOf(claim), "hello"), nil, 0o600)).To(Succeed())
		w.awaitQuiet()
	})

	//proves:every/unmounted
	It("shows an unmount by hand, and the volume is mounted again at once", func() {
		Expect(mount.Kernel{}.Unmount(w.mountOf(pod, claim))).To(Succeed())
		isBack := func() error { _, err := os.Stat(filepath.Join(w.mountOf(pod, claim), "hello")); return err }
		Eventually(isBack).Should(Succeed())
	})

	It("wakes no pod that lost no mount", func() {
		before := passes()
		dir := filepath.Join(w.root, "another")
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		for range 20 {
			Expect(mount.Kernel{}.Tmpfs(dir, mount.TmpfsOptions{})).To(Succeed())
			Expect(mount.Kernel{}.Unmount(dir)).To(Succeed())
		}
		Consistently(passes).Should(Equal(before))
	})
})

// awaitQuiet waits until no pod is reconciled any more.
func (w *world) awaitQuiet() {
	GinkgoHelper()
	for deadline := time.Now().Add(settled); ; {
		before := passes()
		<-time.After(500 * time.Millisecond)
		if passes() == before {
			return
		}
		Expect(time.Now()).To(BeTemporally("<", deadline))
	}
}
