package backendtest

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

func testGrowth(t *testing.T, s subject) {
	s.needsExpander(t)
	made := s.mustProvision(t, Request("1"))
	s.mustExpand(t, made.Handle, "3Mi")
	s.mustExpand(t, made.Handle, "5Mi")
	if again := s.mustProvision(t, Request("1")); again.Handle != made.Handle {
		t.Errorf("a repeat of Provision made another volume: %s, then %s", made.Handle, again.Handle)
	}
}

func testGrowthRepeated(t *testing.T, s subject) {
	s.needsExpander(t)
	made := s.mustProvision(t, Request("1"))
	first := s.mustExpand(t, made.Handle, "5Mi")
	for _, size := range []string{"5Mi", "2Mi", "1Mi"} {
		again := s.mustExpand(t, made.Handle, size)
		if !s.Capabilities().Advisory && again.Capacity.Cmp(first.Capacity) != 0 {
			t.Errorf("asked for %s, it has %s, and had %s", size, again.Capacity.String(), first.Capacity.String())
		}
	}
}

func testGrowthAbsent(t *testing.T, s subject) {
	s.needsExpander(t)
	if _, err := s.expand(Request("1").ID, "5Mi"); !errors.Is(err, backend.NotFound) {
		t.Errorf("one that was never made got the answer %v", err)
	}
	made := s.mustProvision(t, Request("1"))
	s.mustDelete(t, made.Handle)
	if _, err := s.expand(made.Handle, "5Mi"); !errors.Is(err, backend.NotFound) {
		t.Errorf("one that was deleted got the answer %v", err)
	}
	if s.has(made.Handle) {
		t.Error("there is storage again")
	}
}

func testGrowthCancelled(t *testing.T, s subject) {
	s.needsExpander(t)
	made := s.mustProvision(t, Request("1"))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = backend.Expand(over, s.Backend, backend.ExpandRequest{ID: made.Handle, Capacity: resource.MustParse("3Mi")})
	s.mustExpand(t, made.Handle, "5Mi")
}

func (s subject) needsExpander(t *testing.T) {
	t.Helper()
	if _, can := backend.As[backend.Expander](s.Backend); !can {
		t.Skip("volumes of this backend can't grow")
	}
}

func (s subject) mustExpand(t *testing.T, id, size string) backend.Expansion {
	t.Helper()
	expanded, err := s.expand(id, size)
	if err != nil {
		t.Fatalf("growing %s to %s: %v", id, size, err)
	}
	if expanded.Capacity.Cmp(resource.MustParse(size)) < 0 {
		t.Errorf("asked for %s, it has %s", size, expanded.Capacity.String())
	}
	if advisory := s.Capabilities().Advisory; expanded.Advisory != advisory {
		t.Errorf("its capacity is advisory: %v, and of what is made: %v", expanded.Advisory, advisory)
	}
	return expanded
}

// expand repeats the call until its outcome is final, as the contract asks.
func (s subject) expand(id, size string) (expanded backend.Expansion, err error) {
	err = untilFinal(func() (err error) {
		expanded, err = backend.Expand(context.Background(), s.Backend, backend.ExpandRequest{ID: id, Capacity: resource.MustParse(size)})
		return err
	})
	return expanded, err
}
