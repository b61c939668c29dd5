package backendtest

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

func testClone(t *testing.T, s subject) {
	request := s.mustHaveSource(t)
	request.Capacity = resource.MustParse("3Mi")
	made := s.mustProvision(t, request)
	if made.Capacity.Cmp(request.Capacity) < 0 {
		t.Errorf("it has %s, less than the %s asked for", made.Capacity.String(), request.Capacity.String())
	}
	if made.Handle == request.Source.ID || !s.has(request.ID) {
		t.Errorf("it is %s, of which the storage is there: %v", made.Handle, s.has(request.ID))
	}
	s.mustDelete(t, made.Handle)
	if !s.has(request.Source.ID) {
		t.Error("its source went with it")
	}
}

func testCloneRepeated(t *testing.T, s subject) {
	request := s.mustHaveSource(t)
	first := s.mustProvision(t, request)
	s.mustDelete(t, request.Source.ID)
	if !s.has(request.ID) {
		t.Error("it went with its source")
	}
	request.Source = &backend.Source{}
	if again := s.mustProvision(t, request); again.Handle != first.Handle {
		t.Errorf("the repeat made another volume: %s, then %s", first.Handle, again.Handle)
	}
}

func testCloneOfNothing(t *testing.T, s subject) {
	request := s.mustHaveSource(t)
	s.mustDelete(t, request.Source.ID)
	for name, source := range map[string]*backend.Source{"gone": request.Source, "not known any more": {}} {
		request.Source = source
		if _, err := s.provision(request); !errors.Is(err, backend.Invalid) {
			t.Errorf("with a source that is %s it got the answer %v", name, err)
		}
		if s.has(request.ID) {
			t.Errorf("with a source that is %s it was made", name)
		}
	}
}

func testCloneOfAnothers(t *testing.T, s subject) {
	request := s.mustHaveSource(t)
	request.Source.Claim = Request("3").Claim
	if _, err := s.provision(request); !errors.Is(err, backend.Conflict) {
		t.Errorf("it got the answer %v", err)
	}
	if s.has(request.ID) {
		t.Error("it was made")
	}
}

func testCloneDeletedEarly(t *testing.T, s subject) {
	request := s.mustHaveSource(t)
	if _, err := s.Provision(context.Background(), request); err != nil && !errors.Is(err, backend.InProgress) {
		t.Fatalf("provisioning: %v", err)
	}
	s.mustDelete(t, request.ID)
	if s.has(request.ID) || !s.has(request.Source.ID) {
		t.Error("the copy is there, or its source isn't")
	}
}

// mustHaveSource makes a volume, and returns a request for a copy of it. It skips a test if the
// backend makes no copies.
func (s subject) mustHaveSource(t *testing.T) backend.Request {
	t.Helper()
	if !s.Capabilities().Clones {
		t.Skip("this backend makes no copies")
	}
	made, request := s.mustProvision(t, Request("1")), Request("2")
	request.Source = &backend.Source{ID: made.Handle, Claim: Request("1").Claim}
	return request
}
