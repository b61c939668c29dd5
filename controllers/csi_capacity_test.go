package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/csicapacity"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func zoneTopology(zone string) map[string]string { return map[string]string{"zone": zone} }

// rooms answers with these sizes, by zone.
func rooms(sizes map[string]string) func(backend.CapacityRequest) (backend.ClassCapacity, error) {
	return func(request backend.CapacityRequest) (backend.ClassCapacity, error) {
		size, has := sizes[request.Topology["zone"]]
		if !has {
			return backend.ClassCapacity{}, backend.Unavailable.Errorf("the array of zone %s is on fire", request.Topology["zone"])
		}
		return backend.ClassCapacity{Available: resource.MustParse(size)}, nil
	}
}

// roomyWorld is a cluster with a driver that reports its room in two zones, with a class that waits for the
// scheduler. Others don't.
func roomyWorld() *world {
	GinkgoHelper()
	w := newCSIWorld(reconciler.ClassesScope)
	w.create(registeredDriver(), waitingClass())
	w.driver.SetCapacity(rooms(map[string]string{"a": "10Gi", "b": "20Gi"}), zoneTopology("a"), zoneTopology("b"))
	return w
}

// waitingClass is a class of the driver that waits for the scheduler.
func waitingClass() *storagev1.StorageClass {
	class := Class("waiting", csiDriver, nil)
	class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	return class
}

// publishRoom runs the reconcilers of capacities until nothing is written any more, a refresh later.
func (w *world) publishRoom() (last ctrl.Result) {
	GinkgoHelper()
	w.passTime(csicapacity.RefreshInterval)
	w.settleBy(func() error {
		_, err := w.capacities.Reconcile(w.logging(), wake.RequestNamed(csiDriver))
		for _, object := range w.all(&storagev1.CSIStorageCapacityList{}) {
			last, _ = w.refreshes.Reconcile(w.logging(), wake.Request(object))
		}
		return err
	})
	return last
}

// room is what the scheduler reads: manager, class, topology and size.
func (w *world) room() []string {
	var room []string
	for _, object := range w.all(&storagev1.CSIStorageCapacityList{}) {
		of := object.(*storagev1.CSIStorageCapacity)
		size := "?"
		if of.Capacity != nil {
			size = of.Capacity.String()
		}
		if of.MaximumVolumeSize != nil {
			size += "/" + of.MaximumVolumeSize.String()
		}
		room = append(room, strings.Join([]string{of.Labels[csicapacity.ManagedByLabel], of.StorageClassName, labels.Set(of.NodeTopology.MatchLabels).String(), size}, " "))
	}
	slices.Sort(room)
	return room
}

// sidecars is an object of external-provisioner for the same driver.
func sidecars() *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: apiserver.Namespace, Name: "csisc-x7k2p", Labels: map[string]string{
			csicapacity.DriverLabel: csiDriver, csicapacity.ManagedByLabel: "external-provisioner",
		}},
		StorageClassName: "waiting", NodeTopology: &metav1.LabelSelector{MatchLabels: zoneTopology("a")}, Capacity: resource.NewQuantity(1, resource.BinarySI),
	}
}

var _ = Describe("The room of a CSI driver", func() {
	It("is published for each class that waits for the scheduler, and each topology", func() {
		w := roomyWorld()
		w.publishRoom()

		Expect(w.room()).To(Equal([]string{"stowage waiting zone=a 10Gi", "stowage waiting zone=b 20Gi"}))
		for _, object := range w.all(&storagev1.CSIStorageCapacityList{}) {
			Expect(object.GetNamespace()).To(Equal(apiserver.Namespace))
			Expect(object.GetLabels()).To(HaveKeyWithValue(csicapacity.DriverLabel, csiDriver))
			Expect(metav1.GetControllerOf(object).Name).To(Equal(csiDriver))
		}
	})

	It("is published once where the driver has no topology", func() {
		w := roomyWorld()
		w.driver.SetCapacity(func(backend.CapacityRequest) (backend.ClassCapacity, error) {
			return backend.ClassCapacity{Available: resource.MustParse("5Gi"), MaximumVolumeSize: new(resource.MustParse("1Gi"))}, nil
		}, map[string]string{})
		w.publishRoom()

		Expect(w.room()).To(Equal([]string{"stowage waiting  5Gi/1Gi"}))
	})

	It("is that for the parameters of the class, but for those of external-provisioner", func() {
		w := roomyWorld()
		class := Class("full", csiDriver, map[string]string{
			"tier": "gold", "backend": csiDriver, "csi.storage.k8s.io/fstype": "ext4", "csi.storage.k8s.io/unknown": "x", "fstype": "ext4",
		})
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		w.create(class)
		var requests []backend.CapacityRequest
		w.driver.SetCapacity(func(request backend.CapacityRequest) (backend.ClassCapacity, error) {
			requests = append(requests, request)
			return backend.ClassCapacity{}, nil
		}, zoneTopology("a"))
		w.publishRoom()

		Expect(requests).To(ConsistOf(
			backend.CapacityRequest{Class: "full", Parameters: map[string]string{"tier": "gold"}, Topology: zoneTopology("a")},
			backend.CapacityRequest{Class: "waiting", Parameters: map[string]string{}, Topology: zoneTopology("a")}))
	})

	It("is asked for again after a minute, at another time for each object, and not sooner than after five seconds", func() {
		w := roomyWorld()
		asked := 0
		w.driver.SetCapacity(func(backend.CapacityRequest) (backend.ClassCapacity, error) {
			asked++
			return backend.ClassCapacity{Available: *resource.NewQuantity(int64(asked), resource.BinarySI)}, nil
		}, zoneTopology("a"))
		w.publishRoom()
		Expect(w.room()).To(Equal([]string{"stowage waiting zone=a 1"}))
		object := w.all(&storagev1.CSIStorageCapacityList{})[0]

		soon, err := w.refreshes.Reconcile(w.logging(), wake.Request(object))
		Expect(err).NotTo(HaveOccurred())
		Expect(soon.RequeueAfter).To(Equal(5 * time.Second))
		w.passTime(soon.RequeueAfter)
		later, err := w.refreshes.Reconcile(w.logging(), wake.Request(object))
		Expect(err).NotTo(HaveOccurred())
		Expect(later.RequeueAfter).To(And(BeNumerically(">=", time.Minute), BeNumerically("<", 75*time.Second)))
		Expect(w.room()).To(Equal([]string{"stowage waiting zone=a 2"}))
	})

	It("is written only where it changed", func() {
		w := roomyWorld()
		w.publishRoom()
		before := w.written
		w.publishRoom()
		Expect(w.written).To(Equal(before))
	})

	DescribeTable("isn't published any more once", func(change func(*world), left ...string) {
		w := roomyWorld()
		w.create(sidecars())
		w.publishRoom()
		Expect(w.room()).To(HaveLen(3))
		change(w)
		w.publishRoom()

		Expect(w.room()).To(Equal(append([]string{"external-provisioner waiting zone=a 1"}, left...)))
	},
		Entry("the class is deleted", func(w *world) { w.delete(waitingClass()) }),
		Entry("the class is being deleted, and a claim holds it", func(w *world) {
			class := waitingClass()
			update(w, class, func(class *storagev1.StorageClass) {
				class.Finalizers = []string{stowagev1alpha1.ProvisioningFinalizer}
			})
			w.delete(class)
		}),
		Entry("the StorageBackend is being deleted", func(w *world) { w.delete(csiBackend()) }),
		Entry("the StorageBackend is gone", func(w *world) {
			w.delete(csiBackend())
			w.removeFinalizers(csiBackend())
		}),
		Entry("the CSIDriver doesn't let the scheduler go by it", func(w *world) {
			update(w, registeredDriver(), func(driver *storagev1.CSIDriver) { driver.Spec.StorageCapacity = new(false) })
		}),
		Entry("the CSIDriver is gone", func(w *world) { w.delete(registeredDriver()) }),
		Entry("the driver doesn't claim GET_CAPACITY any more", func(w *world) { w.driver.SetCapacity(nil) }),
		Entry("a topology is gone, for that one", func(w *world) {
			w.driver.SetCapacity(rooms(map[string]string{"b": "20Gi"}), zoneTopology("b"))
		}, "stowage waiting zone=b 20Gi"),
	)

	It("stays as it was while the driver is away, and its backend says why", func() {
		w := roomyWorld()
		w.publishRoom()
		w.newEvents()
		w.storage.SetProbe(backend.Unavailable.Errorf("no socket"))
		w.publishRoom()
		w.settle()

		Expect(w.room()).To(Equal([]string{"stowage waiting zone=a 10Gi", "stowage waiting zone=b 20Gi"}))
		expectNotReady(w, csiBackend(), "Unavailable", "no socket")

		w.delete(waitingClass())
		w.publishRoom()
		Expect(w.room()).To(BeEmpty())
	})

	It("stays as it was where the driver errs, with one event for the class, and comes back", func() {
		w := roomyWorld()
		w.publishRoom()
		w.newEvents()
		w.driver.SetCapacity(rooms(nil), zoneTopology("a"), zoneTopology("b"))
		for range 3 {
			w.publishRoom()
		}
		Expect(w.room()).To(Equal([]string{"stowage waiting zone=a 10Gi", "stowage waiting zone=b 20Gi"}))
		Expect(w.newEvents()).To(ConsistOf(And(
			ContainSubstring("Warning CapacityNotPublished the room for volumes of StorageClass waiting in map[zone:"), ContainSubstring("is on fire"))))

		w.driver.SetCapacity(rooms(map[string]string{"a": "1Gi"}), zoneTopology("a"), zoneTopology("b"))
		w.publishRoom()
		Expect(w.room()).To(Equal([]string{"stowage waiting zone=a 1Gi", "stowage waiting zone=b 20Gi"}))
	})

	It("is created again where a person deletes it", func() {
		w := roomyWorld()
		w.publishRoom()
		Expect(w.direct.DeleteAllOf(context.Background(), &storagev1.CSIStorageCapacity{}, client.InNamespace(apiserver.Namespace))).To(Succeed())
		w.publishRoom()
		Expect(w.room()).To(HaveLen(2))
	})
})
