package backendtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

func testMade(t *testing.T, s subject) {
	request := Request("1")
	made := s.mustProvision(t, request)
	if made.Handle == "" {
		t.Error("the volume has no handle")
	}
	if made.Capacity.Cmp(request.Capacity) < 0 {
		t.Errorf("the volume has %s, less than the %s asked for", made.Capacity.String(), request.Capacity.String())
	}
	if !s.has(request.ID) {
		t.Error("there is no storage behind the volume")
	}
}

func testRepeat(t *testing.T, s subject) {
	first := s.mustProvision(t, Request("1"))
	again := s.mustProvision(t, Request("1"))
	if first.Handle != again.Handle {
		t.Errorf("the repeat made another volume: %s, then %s", first.Handle, again.Handle)
	}
}

func testConflict(t *testing.T, s subject) {
	s.mustProvision(t, Request("1"))
	other := Request("2")
	other.ID = Request("1").ID
	if _, err := s.provision(other); !errors.Is(err, backend.Conflict) {
		t.Errorf("another claim got the answer %v", err)
	}
}

func testDelete(t *testing.T, s subject) {
	s.mustProvision(t, Request("1"))
	s.mustDelete(t, Request("1").ID)
	if s.has(Request("1").ID) {
		t.Error("storage is left behind")
	}
}

func testDeleteAbsent(t *testing.T, s subject) {
	s.mustDelete(t, Request("1").ID)
}

func testDeleteTwice(t *testing.T, s subject) {
	s.mustProvision(t, Request("1"))
	s.mustDelete(t, Request("1").ID)
	s.mustDelete(t, Request("1").ID)
}

func testDeleteEarly(t *testing.T, s subject) {
	if _, err := s.Provision(context.Background(), Request("1")); err != nil && !errors.Is(err, backend.InProgress) {
		t.Fatalf("provisioning: %v", err)
	}
	s.mustDelete(t, Request("1").ID)
	if s.has(Request("1").ID) {
		t.Error("storage is left behind")
	}
}

func testNeighbours(t *testing.T, s subject) {
	for _, uid := range []string{"1", "10", "11"} {
		s.mustProvision(t, Request(uid))
	}
	s.mustDelete(t, Request("1").ID)
	for _, uid := range []string{"10", "11"} {
		if !s.has(Request(uid).ID) {
			t.Errorf("volume %s went with its neighbour", Request(uid).ID)
		}
	}
}

func testConcurrent(t *testing.T, s subject) {
	var calls sync.WaitGroup
	handles := sync.Map{}
	for range 8 {
		calls.Go(func() {
			made, err := s.provision(Request("1"))
			if err != nil {
				t.Errorf("provisioning: %v", err)
				return
			}
			handles.Store(made.Handle, true)
		})
	}
	calls.Wait()
	count := 0
	handles.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d volumes were made", count)
	}
}

func testCapabilities(t *testing.T, s subject) {
	request := Request("1")
	request.AccessModes = []corev1.PersistentVolumeAccessMode{"Unknown"}
	if err := s.Capabilities().Check(request); !errors.Is(err, backend.Invalid) {
		t.Errorf("an unknown access mode got the answer %v", err)
	}
}

func testNames(t *testing.T, s subject) {
	one, other := Request("1"), Request("2")
	one.Claim.Namespace, one.Claim.Name = "a-b", "c"
	other.Claim.Namespace, other.Claim.Name = "a", "b-c"
	if s.mustProvision(t, one).Handle == s.mustProvision(t, other).Handle {
		t.Error("they got the same volume")
	}
	s.mustDelete(t, one.ID)
	if !s.has(other.ID) {
		t.Error("the volume of one went with that of the other")
	}
}

func testCancelled(t *testing.T, s subject) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = s.Provision(over, Request("1"))
	s.mustProvision(t, Request("1"))
	_ = s.Delete(over, Request("1").ID)
	s.mustDelete(t, Request("1").ID)
	if s.has(Request("1").ID) {
		t.Error("storage is left behind")
	}
}

func testList(t *testing.T, s subject) {
	lister, can := s.Backend.(backend.Lister)
	if !can {
		t.Skip("this backend can't list")
	}
	for _, uid := range []string{"1", "2"} {
		s.mustProvision(t, Request(uid))
	}
	s.mustDelete(t, Request("1").ID)
	held, err := lister.List(context.Background())
	if err != nil || len(held) != 1 || held[0] != (backend.Held{ID: Request("2").ID, Claim: Request("2").Claim}) {
		t.Errorf("it lists %v, %v", held, err)
	}
}
