package controllers

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// picky is a driver with an opinion on volumes that it didn't make.
type picky struct {
	*fake.CSI
	says  error
	asked int
}

func (*picky) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.CSIType }

func (p *picky) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return p, nil }

func (p *picky) Validate(context.Context, *corev1.PersistentVolume) error {
	p.asked++
	return p.says
}

var _ = Describe("A static volume of a CSI driver", func() {
	// newStatic is a cluster whose driver says this of a volume that a person makes an object for.
	newStatic := func(scope reconciler.Scope, says error, options ...func(*corev1.PersistentVolume)) (*world, *picky, *corev1.PersistentVolume) {
		GinkgoHelper()
		w := newCSIWorld(scope)
		driver := &picky{CSI: w.driver, says: says}
		w.serve(driver)
		pv := Volume("v", append([]func(*corev1.PersistentVolume){ofDriver(csiDriver)}, options...)...)
		w.create(pv)
		w.settle()
		w.settle()
		return w, driver, pv
	}
	refusal := backend.Invalid.Errorf("the volume has no file system xfs")

	DescribeTable("says once, before a pod needs it, what its driver objects to",
		func(scope reconciler.Scope, says error, message string) {
			w, driver, _ := newStatic(scope, says)
			Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(ConsistOf(And(ContainSubstring("with backend "+csiDriver), ContainSubstring(message))))
			Expect(driver.asked).To(Equal(1))
		},
		Entry("how it is used", reconciler.ClusterScope, refusal, "no file system xfs"),
		Entry("that it is there", reconciler.ClusterScope, backend.NotFound.Errorf("there is no volume v"), "there is no volume v"),
		Entry("beside kube-controller-manager", reconciler.ClassesScope, refusal, "no file system xfs"),
	)

	It("is asked about again once its object says another thing", func() {
		w, driver, pv := newStatic(reconciler.ClusterScope, refusal)
		w.newEvents()

		w.get(pv)
		pv.Spec.AccessModes, driver.says = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, nil
		Expect(w.Update(GinkgoT().Context(), pv)).To(Succeed())
		w.settle()

		Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(BeEmpty())
		Expect(driver.asked).To(Equal(2))
	})

	It("is asked about again later, where its driver is away", func() {
		w, driver, pv := newStatic(reconciler.ClusterScope, backend.Unavailable.Errorf("the driver is away"))
		Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(BeEmpty())
		result, err := w.volumes.Reconcile(w.logging(), wake.Request(pv))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(5 * time.Minute))

		driver.says = refusal
		w.settle()

		Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(HaveLen(1))
	})

	It("isn't one that the driver's provisioner made", func() {
		_, driver, _ := newStatic(reconciler.ClusterScope, refusal, madeBy(csiDriver))
		Expect(driver.asked).To(BeZero())
	})
})
