package backend_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// shelf is the least that a backend can be: storage with room for some volumes. docs/write-a-backend.md
// goes through it.
type shelf struct {
	cluster, name string
	room          int

	mu   sync.Mutex
	held map[string]item
}

// item is a volume with the record of its owner.
type item struct {
	backend.Owner
	capacity resource.Quantity
}

// shelfKind makes the shelves of StorageBackends.
type shelfKind struct{ cluster string }

func (shelfKind) Type() stowagev1alpha1.BackendType { return "Shelf" }

func (k shelfKind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return &shelf{cluster: k.cluster, name: object.Name, room: 100, held: map[string]item{}}, nil
}

func (*shelf) Capabilities() backend.Capabilities {
	return backend.Capabilities{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem},
	}
}

// Provision makes a volume, or finds it. A second claim never gets the first one's.
func (s *shelf) Provision(_ context.Context, request backend.Request) (*backend.Volume, error) {
	if err := s.Capabilities().Check(request); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, exists := s.held[request.ID]
	switch {
	case exists && found.Claim != request.Claim:
		return nil, backend.Conflict.Errorf("volume %s belongs to claim %s/%s", request.ID, found.Claim.Namespace, found.Claim.Name)
	case !exists && len(s.held) >= s.room:
		return nil, backend.Exhausted.Errorf("the shelf holds %d volumes: delete a claim, or use another backend", s.room)
	case !exists:
		found = item{backend.Owner{ID: request.ID, Cluster: s.cluster, Backend: s.name, Claim: request.Claim}, request.Capacity}
		s.held[request.ID] = found
	}
	return &backend.Volume{Handle: request.ID, Capacity: found.capacity}, nil
}

// Delete removes a volume of this backend. One that isn't there is no error.
func (s *shelf) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, exists := s.held[id]
	if !exists {
		return nil
	}
	if err := found.CheckOwner("volume "+id, s.cluster, s.name); err != nil {
		return err
	}
	delete(s.held, id)
	return nil
}

// Probe is an ability: the shelf can check whether new volumes can be made.
func (s *shelf) Probe(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= s.room {
		return backend.Unavailable.Errorf("the shelf is full: delete a claim")
	}
	return nil
}

func TestTheExampleKeepsTheContract(t *testing.T) {
	backendtest.Contract(t, func(*testing.T) (backend.Backend, func(string) bool) {
		made := &shelf{cluster: "cluster-1", name: "shelf", room: 100, held: map[string]item{}}
		return made, func(id string) bool {
			made.mu.Lock()
			defer made.mu.Unlock()
			_, exists := made.held[id]
			return exists
		}
	})
}

// A kind opens backends. A reconciler calls a backend and goes by the kind of its error, never by its text.
func Example() {
	var kind backend.Kind = shelfKind{cluster: "cluster-1"}
	object := &stowagev1alpha1.StorageBackend{}
	object.Name = "shelf"
	opened, err := kind.Open(object)
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := opened.Provision(context.Background(), backendtest.Request("1"))
	fmt.Println(made.Handle, made.Capacity.String(), err)

	other := backendtest.Request("2")
	other.ID = made.Handle
	_, err = opened.Provision(context.Background(), other)
	fmt.Println(backend.KindOf(err))

	_, probes := backend.As[backend.Prober](opened)
	_, attaches := backend.As[backend.Attacher](opened)
	fmt.Println(probes, attaches)
	// Output:
	// pvc-1 1Mi <nil>
	// Conflict
	// true false
}
