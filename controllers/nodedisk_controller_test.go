package controllers

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/nodevolume"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// lookAtDisks passes over all pairs of backends and nodes, those that are gone
// included, until nothing is written any more.
func (w *world) lookAtDisks() {
	GinkgoHelper()
	for range maxRounds {
		before := w.written
		for _, request := range w.pairs() {
			_, _ = w.disks.Reconcile(w.logging(), request)
		}
		if w.written == before {
			return
		}
	}
	Fail("the disks did not come to rest")
}

func (w *world) pairs() []reconcile.Request {
	ctx := context.Background()
	var pairs []reconcile.Request
	for _, object := range w.all(&stowagev1alpha1.StorageBackendList{}) {
		pairs = append(pairs, w.disks.PairsOfBackend(ctx, object)...)
	}
	for _, disk := range w.all(&stowagev1alpha1.NodeDiskList{}) {
		pairs = append(pairs, nodevolume.PairOfDisk(ctx, disk)...)
	}
	for _, capacity := range w.all(&storagev1.CSIStorageCapacityList{}) {
		pairs = append(pairs, w.disks.PairOfCapacity(ctx, capacity)...)
	}
	return pairs
}

// report says how a disk is, as the node's agent does.
func (w *world) report(name, node, available string, status metav1.ConditionStatus) {
	GinkgoHelper()
	disk := &stowagev1alpha1.NodeDisk{ObjectMeta: metav1.ObjectMeta{Name: nodevolume.NodeDiskName(name, node)}}
	w.get(disk)
	disk.Status = stowagev1alpha1.NodeDiskStatus{
		Identity: &stowagev1alpha1.DiskIdentity{ID: "a"}, Available: ptr.To(resource.MustParse(available)),
		Conditions: []metav1.Condition{{
			Type: stowagev1alpha1.ReadyCondition, Status: status, Reason: "Said", LastTransitionTime: metav1.Now(),
		}},
	}
	Expect(w.direct.Status().Update(context.Background(), disk)).To(Succeed())
}

// published is what the scheduler reads: class, node and size.
func (w *world) published() []string {
	var published []string
	for _, object := range w.all(&storagev1.CSIStorageCapacityList{}) {
		capacity := object.(*storagev1.CSIStorageCapacity)
		Expect(capacity.MaximumVolumeSize).To(Equal(capacity.Capacity))
		published = append(published, capacity.StorageClassName+" "+
			capacity.NodeTopology.MatchLabels[stowagev1alpha1.TopologyNodeLabel]+" "+capacity.Capacity.String())
	}
	slices.Sort(published)
	return published
}

func (w *world) diskNames() []string {
	var names []string
	for _, disk := range w.all(&stowagev1alpha1.NodeDiskList{}) {
		names = append(names, disk.(*stowagev1alpha1.NodeDisk).Spec.NodeName)
	}
	slices.Sort(names)
	return names
}

// diskWorld is a cluster with two nodes, a local backend, and a class of it that waits
// for the scheduler.
func diskWorld(options ...func(*stowagev1alpha1.StorageBackend)) (*world, *stowagev1alpha1.StorageBackend) {
	GinkgoHelper()
	w, object := newWorld(reconciler.ClassesScope), LocalBackend("fast", options...)
	class := Class("waiting", stowagev1alpha1.LocalDriver, map[string]string{"backend": "fast"})
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	w.create(object, Node("node-a"), Node("node-b"), class,
		Class("immediate", stowagev1alpha1.LocalDriver, map[string]string{"backend": "fast"}))
	return w, object
}

var _ = Describe("A local backend", func() {
	It("has a disk on each of its nodes, and on no other", func() {
		w, _ := diskWorld(func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local.NodeSelector = map[string]string{"disk": "ssd"}
		})
		update(w, Node("node-a"), func(node *corev1.Node) { node.Labels["disk"] = "ssd" })
		w.lookAtDisks()
		Expect(w.diskNames()).To(Equal([]string{"node-a"}))

		update(w, Node("node-a"), func(node *corev1.Node) { delete(node.Labels, "disk") })
		w.lookAtDisks()
		Expect(w.diskNames()).To(BeEmpty())
	})

	It("writes nothing when nothing changed", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		before := w.written
		w.lookAtDisks()
		Expect(w.written).To(Equal(before))
	})

	It("copies to its disks what to keep free, also when that changes", func() {
		w, object := diskWorld()
		w.lookAtDisks()
		update(w, object, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local.ReservedCapacity = ptr.To(resource.MustParse("5Gi"))
		})
		w.lookAtDisks()
		for _, disk := range w.all(&stowagev1alpha1.NodeDiskList{}) {
			Expect(disk.(*stowagev1alpha1.NodeDisk).Spec.ReservedCapacity.String()).To(Equal("5Gi"))
		}
	})

	It("keeps the disk of a node that is gone while volumes of it are there", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		volume := nodeVolume("fast", "node-a")
		w.create(volume)
		w.delete(Node("node-a"))
		w.lookAtDisks()
		Expect(w.diskNames()).To(Equal([]string{"node-a", "node-b"}))

		w.removeFinalizers(volume)
		w.delete(volume)
		w.lookAtDisks()
		Expect(w.diskNames()).To(Equal([]string{"node-b"}))
	})

	It("doesn't take an old cache's word for a node's end", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		w.views.disks.Client = withoutNodes{w}
		w.lookAtDisks()
		Expect(w.diskNames()).To(Equal([]string{"node-a", "node-b"}))
	})

	It("doesn't give up a disk that is in use all the same", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		w.report("fast", "node-a", "1Gi", metav1.ConditionTrue)
		disk := &stowagev1alpha1.NodeDisk{ObjectMeta: metav1.ObjectMeta{Name: nodevolume.NodeDiskName("fast", "node-a")}}
		update(w, disk, func(disk *stowagev1alpha1.NodeDisk) { disk.Spec.Replaces = "a" })
		w.lookAtDisks()
		w.get(disk)
		Expect(disk.Spec.Replaces).To(BeEmpty())
	})
})

var _ = Describe("The room on a node's disk", func() {
	It("is published for each class that the scheduler checks, as it changes", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		Expect(w.published()).To(Equal([]string{"waiting node-a 0", "waiting node-b 0"}))
		w.report("fast", "node-a", "10Gi", metav1.ConditionTrue)
		w.report("fast", "node-b", "7Gi", metav1.ConditionTrue)
		w.lookAtDisks()
		Expect(w.published()).To(Equal([]string{"waiting node-a 10Gi", "waiting node-b 7Gi"}))

		w.report("fast", "node-b", "3Gi", metav1.ConditionTrue)
		w.lookAtDisks()
		Expect(w.published()).To(Equal([]string{"waiting node-a 10Gi", "waiting node-b 3Gi"}))
	})

	It("is none while the disk isn't Ready", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		w.report("fast", "node-a", "10Gi", metav1.ConditionFalse)
		w.lookAtDisks()
		Expect(w.published()).To(ContainElement("waiting node-a 0"))
	})

	DescribeTable("is not published any more once",
		func(end func(*world, *stowagev1alpha1.StorageBackend), left ...string) {
			w, object := diskWorld()
			w.lookAtDisks()
			end(w, object)
			w.lookAtDisks()
			Expect(w.published()).To(ConsistOf(left))
		},
		Entry("its node is gone", func(w *world, _ *stowagev1alpha1.StorageBackend) { w.delete(Node("node-a")) }, "waiting node-b 0"),
		Entry("its class is gone", func(w *world, _ *stowagev1alpha1.StorageBackend) { w.delete(Class("waiting", "", nil)) }),
		Entry("its backend is gone", func(w *world, object *stowagev1alpha1.StorageBackend) { w.delete(object) }),
		Entry("its backend is being deleted", func(w *world, object *stowagev1alpha1.StorageBackend) {
			update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Finalizers = []string{"example.com/hold"} })
			w.delete(object)
		}),
		Entry("the class allows the node no more", func(w *world, _ *stowagev1alpha1.StorageBackend) {
			w.delete(Class("waiting", "", nil))
			class := Class("waiting", stowagev1alpha1.LocalDriver, map[string]string{"backend": "fast"})
			class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: stowagev1alpha1.TopologyNodeLabel, Values: []string{"node-b"}},
			}}}
			w.create(class)
		}, "waiting node-b 0"),
	)

	It("is published under the node's new label when that changes", func() {
		w, _ := diskWorld()
		w.lookAtDisks()
		update(w, Node("node-a"), func(node *corev1.Node) { node.Labels[stowagev1alpha1.TopologyNodeLabel] = "renamed" })
		w.lookAtDisks()
		Expect(w.published()).To(Equal([]string{"waiting node-b 0", "waiting renamed 0"}))
	})

	DescribeTable("is published in the end though a write", func(happens fault) {
		for write := range 6 {
			w, _ := diskWorld()
			w.faults = map[int]fault{write: happens}
			w.lookAtDisks()
			w.lookAtDisks()
			Expect(w.published()).To(Equal([]string{"waiting node-a 0", "waiting node-b 0"}), "write %d", write)
			w.empty()
		}
	}, Entry("is lost", lost), Entry("isn't answered", unanswered))
})
