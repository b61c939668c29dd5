package controllers

import (
	"context"
	"errors"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("Nothing is provisioned", func() {
	It("in a backend that was let go and that the cache still shows", func() {
		w := newWorld(reconciler.ClusterScope)
		object, claim := LocalBackend("disks"), Claim(InClass("by-hand"))
		object.Spec.StorageClass = nil
		w.create(object, Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks"}))
		w.settle()
		w.get(object)
		shown := object.DeepCopy()
		w.delete(object)
		w.settle()
		w.create(claim)

		w.views.claims.Client = stale{w, []client.Object{shown}}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))

		Expect(w.storage.Len()).To(BeZero())
	})

	It("for a claim that is gone and that a new leader's cache still shows", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.create(claim)
		w.storage.FailNext(backend.InProgress.Errorf("wait"))
		_ = w.round()
		w.get(claim)
		shown := claim.DeepCopy()
		w.delete(claim)
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())

		w.restart()
		w.views.claims.Client = stale{w, []client.Object{shown}}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(shown))

		Expect(w.storage.Len()).To(BeZero())
	})
})

var _ = Describe("Nothing is left behind", func() {
	It("in the backend that the class named before it was made again", func() {
		w := newWorld(reconciler.ClusterScope)
		first, second := fake.New(), fake.New()
		w.serve(byName{"first": first, "second": second})
		class := Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": "first"})
		w.create(LocalBackend("first"), LocalBackend("second"), class)
		w.settle()
		claim := Claim(InClass("by-hand"))
		w.halfMake(claim)
		Expect(first.Len()).To(Equal(1))

		w.delete(class)
		w.create(Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": "second"}))
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(w.read(claim))))
		Expect(first.Len()).To(BeZero())
		Expect(second.Len()).To(Equal(1))
	})

	It("by a backend that takes its time to remove, and nothing is made again before that", func() {
		w := newWorld(reconciler.ClusterScope)
		slow := &slowStorage{Backend: w.storage}
		w.serve(byName{"disks": slow})
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.halfMake(claim)
		made := slow.made

		w.delete(claim)
		for range maxRounds {
			_ = w.round()
		}

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(slow.made-made).To(BeNumerically("<=", 1), "the call is repeated once, to know its outcome")
	})

	It("by a call that was not answered and takes effect after the claim is gone", func() {
		w := newWorld(reconciler.ClusterScope)
		slow := &lateStorage{Backend: w.storage}
		w.serve(byName{"disks": slow})
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.create(claim)
		_ = w.round()

		w.delete(claim)
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())
		slow.land()

		Expect(w.storage.Len()).To(BeZero())
	})

	It("by such a call to a place that the class chose: it is repeated there, though the class is gone", func() {
		w := newWorld(reconciler.ClusterScope)
		slow, class := &lateStorage{Backend: w.storage}, near()
		w.serve(byName{"disks": slow})
		claim := Claim(InClass("near"))
		w.create(LocalBackend("disks"), class)
		w.settle()
		w.create(claim)
		_ = w.round()

		w.delete(class)
		w.delete(claim)
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())
		slow.land()

		Expect(w.storage.Len()).To(BeZero())
	})
})

var _ = Describe("A bound claim whose other storage is being removed", func() {
	It("comes to rest, and stays Bindable", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.halfMake(claim)
		w.storage.FailNext(slices.Repeat([]error{backend.InProgress.Errorf("waiting for the agent")}, 2*maxRounds)...)
		w.create(Volume("static", OfClass("disks"), ReservedTo("data")))

		w.settle()

		Expect(w.condition(claim).Status).To(Equal(corev1.ConditionTrue))
	})
})

var _ = Describe("In scope=classes a claim", func() {
	It("keeps its provisioner when its class names another", func() {
		w := newWorld(reconciler.ClassesScope)
		claim := Claim(InClass("other"), requestedFrom(stowagev1alpha1.LocalDriver))
		w.create(Class("other", "ebs.csi.aws.com", nil), claim)

		w.settle()

		w.get(claim)
		Expect(claim.Annotations).To(HaveKeyWithValue(volume.AnnStorageProvisioner, stowagev1alpha1.LocalDriver))
		Expect(w.written).To(BeZero())
	})

	It("reports once what is wrong, not on every pass", func() {
		w := newWorld(reconciler.ClassesScope)
		w.create(Class("disks", stowagev1alpha1.LocalDriver, map[string]string{"backend": "none"}),
			Claim(InClass("disks"), requestedFrom(stowagev1alpha1.LocalDriver)))
		for range 5 {
			_ = w.round()
		}
		Expect(w.newEvents()).To(HaveLen(1))
	})
})

// requestedFrom requests a claim's volume from a driver, as kube-controller-manager does.
func requestedFrom(driver string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnStorageProvisioner, driver)
	}
}

// halfMake creates a claim whose storage is made, and whose volume object is lost
// on the way.
func (w *world) halfMake(claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.create(claim)
	w.faults = map[int]fault{w.written + 1: lost}
	_ = w.round()
}

// serve has these backends served instead of the world's one.
func (w *world) serve(kind backend.Kind) {
	*w.served = opener.Opener{Registry: backend.NewRegistry(kind)}
}

// byName serves StorageBackends with backends of their own.
type byName map[string]backend.Backend

func (byName) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.LocalType }
func (k byName) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return k[object.Name], nil
}

// slowStorage answers InProgress to the first call of every removal, and counts its calls.
type slowStorage struct {
	*fake.Backend
	made int
}

func (s *slowStorage) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	s.made++
	return s.Backend.Provision(ctx, request)
}

func (s *slowStorage) Delete(ctx context.Context, id string) error {
	if s.Has(id) {
		return errors.Join(s.Backend.Delete(ctx, id), backend.InProgress.Errorf("removing it"))
	}
	return nil
}

// lateStorage doesn't answer the first call, which takes effect later, or when it
// is repeated for the same place.
type lateStorage struct {
	*fake.Backend
	called  bool
	pending *backend.Request
}

func (s *lateStorage) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if !s.called {
		s.called, s.pending = true, &request
		return nil, errors.New("connection lost")
	}
	if s.pending != nil && equality.Semantic.DeepEqual(s.pending.Topologies, request.Topologies) {
		s.pending = nil
	}
	return s.Backend.Provision(ctx, request)
}

func (s *lateStorage) land() {
	if s.pending != nil {
		_, _ = s.Backend.Provision(context.Background(), *s.pending)
	}
}
