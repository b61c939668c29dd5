package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A static volume that promises what no volume of its backend can do", func() {
	DescribeTable("says so once, before a pod needs it",
		func(scope reconciler.Scope, says string, option func(*corev1.PersistentVolume)) {
			w := newWorld(scope)
			w.serve(byName{"disks": forOneNode{w.storage}})
			w.create(LocalBackend("disks"), Volume("v", inBackend("disks"), option))

			w.settle()
			w.settle()

			Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(ConsistOf(And(ContainSubstring("with backend disks"), ContainSubstring(says))))
		},
		Entry("with an access mode", reconciler.ClusterScope, "access mode ReadWriteMany is not supported", WithModes(corev1.ReadWriteOnce, corev1.ReadWriteMany)),
		Entry("as a device", reconciler.ClusterScope, "volumeMode Block is not supported", asDevice),
		Entry("beside kube-controller-manager", reconciler.ClassesScope, "volumeMode Block is not supported", asDevice),
	)

	It("is said again once it promises another thing", func() {
		w := newWorld(reconciler.ClusterScope)
		w.serve(byName{"disks": forOneNode{w.storage}})
		pv := Volume("v", inBackend("disks"), WithModes(corev1.ReadWriteMany))
		w.create(LocalBackend("disks"), pv)
		w.settle()
		w.newEvents()

		w.get(pv)
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		Expect(w.Update(GinkgoT().Context(), pv)).To(Succeed())
		w.settle()

		Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(ConsistOf(ContainSubstring("ReadOnlyMany")))
	})

	It("isn't one that keeps its backend's promise, or has no backend", func() {
		w := newWorld(reconciler.ClusterScope)
		w.serve(byName{"disks": forOneNode{w.storage}})
		w.create(LocalBackend("disks"), Volume("v", inBackend("disks")), Volume("of-none", inBackend(""), WithModes(corev1.ReadWriteMany)),
			Volume("of-one-that-is-gone", inBackend("gone"), WithModes(corev1.ReadWriteMany)))

		w.settle()

		Expect(eventsWith(w.newEvents(), "VolumeUnusable")).To(BeEmpty())
	})
})

// forOneNode is storage whose volumes are directories that one node writes.
type forOneNode struct{ *fake.Backend }

func (forOneNode) Capabilities() backend.Capabilities {
	return backend.Capabilities{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem},
	}
}

func asDevice(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
