package backendtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

func testRetain(t *testing.T, s subject) {
	needs[backend.Retainer](t, s)
	for _, uid := range []string{"1", "2"} {
		s.mustProvision(t, Request(uid))
	}
	first := s.mustRetain(t, Request("1").ID)
	if again := s.mustRetain(t, Request("1").ID); again != first || first == "" {
		t.Errorf("its data is in %q, then in %q", first, again)
	}
	for _, held := range s.mustList(t) {
		if held.Retained != (held.ID == Request("1").ID) {
			t.Errorf("it lists %v", held)
		}
	}
	if !s.has(Request("1").ID) {
		t.Error("it is gone")
	}
}

func testRetainAbsent(t *testing.T, s subject) {
	needs[backend.Retainer](t, s)
	s.mustProvision(t, Request("2"))
	if _, err := s.retain(Request("1").ID); !errors.Is(err, backend.NotFound) {
		t.Errorf("one that was never made got the answer %v", err)
	}
	s.mustProvision(t, Request("1"))
	s.mustDelete(t, Request("1").ID)
	if _, err := s.retain(Request("1").ID); !errors.Is(err, backend.NotFound) {
		t.Errorf("one that was deleted got the answer %v", err)
	}
	if s.has(Request("1").ID) {
		t.Error("there is storage again")
	}
}

func testRetainDeleted(t *testing.T, s subject) {
	needs[backend.Retainer](t, s)
	s.mustProvision(t, Request("1"))
	s.mustRetain(t, Request("1").ID)
	s.mustDelete(t, Request("1").ID)
	if s.has(Request("1").ID) {
		t.Error("storage is left behind")
	}
}

// needs skips a test, unless the backend has an ability to retain. One that an audit lists must have it.
func needs[Retainer any](t *testing.T, s subject) {
	t.Helper()
	_, lists := backend.As[backend.Lister](s.Backend)
	_, retains := backend.As[Retainer](s.Backend)
	switch {
	case lists && !retains:
		t.Fatal("it can list what it holds, and can't retain it: an audit would take what a person keeps for an orphan")
	case !retains:
		t.Skip("this backend can't retain")
	}
}

func (s subject) mustRetain(t *testing.T, id string) string {
	t.Helper()
	place, err := s.retain(id)
	if err != nil {
		t.Fatalf("retaining %s: %v", id, err)
	}
	return place
}

// retain repeats the call until its outcome is final, as the contract asks.
func (s subject) retain(id string) (place string, err error) {
	err = untilFinal(func() (err error) {
		place, err = backend.Retain(context.Background(), s.Backend, id)
		return err
	})
	return place, err
}

func (s subject) mustList(t *testing.T) []backend.Held {
	t.Helper()
	lister, _ := backend.As[backend.Lister](s.Backend)
	held, err := lister.List(context.Background())
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	return held
}
