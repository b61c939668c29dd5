package integration_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// driver is a CSI driver, and its storage.
type driver struct {
	*fake.CSI
	storage *fake.Backend
}

// drivers serve the StorageBackends of kind csi that have their names.
type drivers map[string]driver

func newDrivers(names ...string) drivers {
	made := drivers{}
	for _, name := range names {
		storage := fake.New()
		made[name] = driver{fake.NewCSI(storage), storage}
	}
	return made
}

func (drivers) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.CSIType }

func (d drivers) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return d[object.Name], nil
}

// serve starts a manager, and creates a StorageBackend for each driver, with a class of its name.
func (d drivers) serve(ctx SpecContext, mode storagev1.VolumeBindingMode) {
	GinkgoHelper()
	manager{scope: reconciler.ClusterScope, kinds: []backend.Kind{d}, namespace: apiserver.Namespace}.start()
	DeferCleanup(removeEverything)
	for name := range d {
		create(ctx, LocalBackend(name, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local = nil
			object.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: name, Endpoint: "unix:///csi/" + name}
			object.Spec.StorageClass.VolumeBindingMode = mode
			object.Spec.MaxConcurrentOperations = 4
		}))
	}
}

// register creates a CSIDriver for each driver, which lets the scheduler go by its capacity.
func (d drivers) register(ctx SpecContext) {
	GinkgoHelper()
	for name := range d {
		registered := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
		create(ctx, registered)
		DeferCleanup(func(ctx SpecContext) { Expect(users.Delete(ctx, registered)).To(Succeed()) })
	}
}

var _ = Describe("With the whole manager running, a CSI driver", func() {
	It("has its room published, and again as soon as a volume is made or deleted", func(ctx SpecContext) {
		const name = "disk.example.com"
		all := newDrivers(name)
		of := all[name]
		of.SetCapacity(func(backend.CapacityRequest) (backend.ClassCapacity, error) {
			return backend.ClassCapacity{Available: *resource.NewQuantity(int64(10-of.storage.Len()), resource.BinarySI)}, nil
		}, map[string]string{"zone": "a"})
		all.register(ctx)
		all.serve(ctx, storagev1.VolumeBindingWaitForFirstConsumer)
		Eventually(roomOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).Should(Equal([]string{"10"}))

		claim := Claim(InClass(name))
		claim.Annotations = map[string]string{volume.AnnSelectedNode: "node-1"}
		create(ctx, Node("node-1"), claim)
		eventuallyBound(ctx, claim)
		Eventually(roomOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).Should(Equal([]string{"9"}))

		Expect(users.Delete(ctx, claim)).To(Succeed())
		Eventually(roomOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).Should(Equal([]string{"10"}))
		Expect(users.Delete(ctx, &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		Eventually(roomOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).Should(BeEmpty())
	})
})

var _ = Describe("With the whole manager running, the room of a CSI driver", func() {
	It("is published while another driver hangs as it counts its own", func(ctx SpecContext) {
		const name, hung, zones = "disk.example.com", "hung.example.com", 200
		all, released := newDrivers(name, hung), make(chan struct{})
		DeferCleanup(func() { close(released) })
		var many []map[string]string
		for zone := range zones {
			many = append(many, map[string]string{"zone": fmt.Sprint(zone)})
		}
		all[hung].SetCapacity(func(backend.CapacityRequest) (backend.ClassCapacity, error) {
			<-released
			return backend.ClassCapacity{}, nil
		}, many...)
		all[name].SetCapacity(func(backend.CapacityRequest) (backend.ClassCapacity, error) {
			return backend.ClassCapacity{Available: *resource.NewQuantity(10, resource.BinarySI)}, nil
		}, map[string]string{"zone": "a"})
		all.register(ctx)
		all.serve(ctx, storagev1.VolumeBindingWaitForFirstConsumer)

		Eventually(roomOf).WithContext(ctx).WithArguments(hung).WithTimeout(soon).Should(HaveLen(zones))
		Eventually(roomOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).Should(Equal([]string{"10"}))
		claim := Claim(InClass(hung))
		claim.Annotations = map[string]string{volume.AnnSelectedNode: "node-1"}
		create(ctx, Node("node-1"), claim)
		eventuallyBound(ctx, claim)
		Expect(roomOf(ctx, hung)).To(HaveEach("unknown"))
	})
})

// roomOf is the room that is published for a driver.
func roomOf(ctx context.Context, driver string) (sizes []string, err error) {
	published := &storagev1.CSIStorageCapacityList{}
	err = users.List(ctx, published, client.InNamespace(apiserver.Namespace), client.MatchingLabels{"csi.storage.k8s.io/drivername": driver})
	for _, each := range published.Items {
		size := "unknown"
		if each.Capacity != nil {
			size = each.Capacity.String()
		}
		sizes = append(sizes, size)
	}
	return sizes, err
}

var _ = Describe("Of several CSI drivers", func() {
	const each = 15

	It("those that answer bind their claims as fast as ever while one hangs", func(ctx SpecContext) {
		well := []string{"a.example.com", "b.example.com", "c.example.com"}
		const hung = "hung.example.com"
		all := newDrivers(append(well, hung)...)
		all.serve(ctx, storagev1.VolumeBindingImmediate)
		began := time.Now()
		claimOf(ctx, "before", well, each)
		eventuallyAllBound(ctx, "before", well, each)
		alone := time.Since(began)

		release := all[hung].storage.Hold()
		DeferCleanup(release)
		claimOf(ctx, "hung", []string{hung}, each)
		Eventually(all[hung].storage.Calls).WithTimeout(clearing).Should(HaveLen(4))
		began = time.Now()
		claimOf(ctx, "after", well, each)
		eventuallyAllBound(ctx, "after", well, each)
		beside := time.Since(began)

		GinkgoWriter.Printf("%d claims: %s without, and %s beside a driver that hangs\n", len(well)*each, alone, beside)
		// A call ends after two minutes: claims that wait for one take longer than that.
		Expect(all[hung].storage.Calls()).To(HaveLen(4), "and the driver that hangs has no more calls than its StorageBackend allows")
		release()
		eventuallyAllBound(ctx, "hung", []string{hung}, each)
		if beside > 3*alone+soon {
			// The machine may have become slow: the same is measured again.
			began = time.Now()
			claimOf(ctx, "again", well, each)
			eventuallyAllBound(ctx, "again", well, each)
			alone = time.Since(began)
		}
		Expect(beside).To(BeNumerically("<=", 3*alone+soon))
	})
})

func claimOf(ctx context.Context, kind string, classes []string, each int) {
	GinkgoHelper()
	for _, class := range classes {
		inAnyOrder(each, func(i int) { create(ctx, Claim(ClaimNamed(name(kind+"-"+class, i)), InClass(class))) })
	}
}

func eventuallyAllBound(ctx context.Context, kind string, classes []string, each int) {
	GinkgoHelper()
	for _, class := range classes {
		for i := range each {
			eventuallyBound(ctx, Claim(ClaimNamed(name(kind+"-"+class, i))))
		}
	}
}
