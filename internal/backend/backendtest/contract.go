// Package backendtest is the contract suite: what every backend must do, whatever
// its storage is. A backend's own tests call Contract with a way to make an empty
// one.
package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// patience is how long a call may go on saying InProgress.
	patience = 30 * time.Second
	pause    = 10 * time.Millisecond
)

// Contract runs the suite against a backend. Each test makes one of its own; Has
// tells whether storage with an id exists, seen from outside the backend.
func Contract(t *testing.T, open func(t *testing.T) (opened backend.Backend, has func(id string) bool)) {
	for name, test := range map[string]func(*testing.T, subject){
		"a volume is made, with the capacity asked for":        testMade,
		"a repeat finds the volume made":                       testRepeat,
		"an id that is another claim's is a conflict":          testConflict,
		"a deleted volume is gone":                             testDelete,
		"a volume that was never there can be deleted":         testDeleteAbsent,
		"a volume can be deleted twice":                        testDeleteTwice,
		"a volume can be deleted while it is being made":       testDeleteEarly,
		"deleting one volume leaves its neighbours":            testNeighbours,
		"many calls for one volume make one":                   testConcurrent,
		"a request beyond the capabilities is told as invalid": testCapabilities,
		"claims whose names run together share nothing":        testNames,
		"a call that was given up is made good by a repeat":    testGivenUp,
		"a backend that can list lists what is there":          testList,
		"what is retained is listed as such, and there":        testRetain,
		"what isn't there can't be retained":                   testRetainAbsent,
		"what is retained can still be deleted":                testRetainDeleted,
		"a volume that grows has what it was asked to have":    testGrowth,
		"growing again, or to less, changes nothing":           testGrowthRepeated,
		"a volume that isn't there can't grow":                 testGrowthAbsent,
		"a growth that was given up is made good by a repeat":  testGrowthGivenUp,
		"a copy is one of its own, as large as asked for":      testClone,
		"a copy that was begun is found without its source":    testCloneRepeated,
		"a copy of what isn't there is never an empty volume":  testCloneOfNothing,
		"a copy of another claim's volume is refused":          testCloneOfAnothers,
		"a copy can be deleted while it is being made":         testCloneDeletedEarly,
	} {
		t.Run(name, func(t *testing.T) {
			opened, has := open(t)
			test(t, subject{opened, has})
		})
	}
}

// Request asks for a volume of 1Mi for the claim with this uid.
func Request(uid string) backend.Request {
	return backend.Request{
		ID:          backend.VolumeID(types.UID(uid), 1),
		Claim:       stowagev1alpha1.ClaimReference{Namespace: "default", Name: "claim-" + uid, UID: types.UID(uid)},
		Capacity:    resource.MustParse("1Mi"),
		VolumeMode:  corev1.PersistentVolumeFilesystem,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	}
}

type subject struct {
	backend.Backend
	has func(id string) bool
}

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
	stranger := Request("2")
	stranger.ID = Request("1").ID
	if _, err := s.provision(stranger); !errors.Is(err, backend.Conflict) {
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
	request.AccessModes = []corev1.PersistentVolumeAccessMode{"Unheard"}
	if err := s.Capabilities().Check(request); !errors.Is(err, backend.Invalid) {
		t.Errorf("an unheard-of access mode got the answer %v", err)
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

func testGivenUp(t *testing.T, s subject) {
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

func (s subject) mustProvision(t *testing.T, request backend.Request) *backend.Volume {
	t.Helper()
	made, err := s.provision(request)
	if err != nil {
		t.Fatalf("provisioning %s: %v", request.ID, err)
	}
	return made
}

func (s subject) mustDelete(t *testing.T, id string) {
	t.Helper()
	err := untilFinal(func() error { return s.Delete(context.Background(), id) })
	if err != nil {
		t.Fatalf("deleting %s: %v", id, err)
	}
}

// provision repeats the call until its outcome is final, as the contract asks.
func (s subject) provision(request backend.Request) (made *backend.Volume, err error) {
	err = untilFinal(func() (err error) {
		made, err = s.Provision(context.Background(), request)
		return err
	})
	return made, err
}

func untilFinal(call func() error) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := call()
		if !backend.Unfinished(err) && !errors.Is(err, backend.NotReady) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return fmt.Errorf("still in progress after %s: %w", patience, err)
		}
	}
}
