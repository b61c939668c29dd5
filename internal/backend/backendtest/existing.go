package backendtest

import (
	"errors"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// testExisting attaches and detaches a disk by its path. All other calls with that path leave the
// disk attached.
func testExisting(t *testing.T, m machines) {
	path := m.Existing
	if path == "" {
		t.Skip("this backend attaches no disks that others made")
	}
	first, again := m.mustAttach(t, path, m.Nodes[0]), m.mustAttach(t, path, m.Nodes[0])
	if first.Metadata[backend.DeviceMetadata] == "" || !maps.Equal(first.Metadata, again.Metadata) {
		t.Errorf("the metadata is %v, and then %v", first.Metadata, again.Metadata)
	}
	if _, err := m.attach(path, m.Nodes[1], false); !errors.Is(err, backend.Conflict) {
		t.Errorf("the second node got the answer %v", err)
	}
	m.expectNothingElse(t, path)
	if found := m.attachments(t); len(found) > 0 {
		t.Errorf("it is listed among the backend's own: %v", found)
	}
	for _, want := range []bool{true, false} {
		var is bool
		err := untilFinal(func() (err error) {
			is, err = m.attacher.IsAttached(t.Context(), path, m.Nodes[0])
			return err
		})
		if is != want || err != nil {
			t.Errorf("it is attached: %t, %v", is, err)
		}
		m.mustDetach(t, path, m.Nodes[0])
	}
}

// expectNothingElse expects every call but those of Attacher to refuse a disk's path, or to
// find nothing.
func (m machines) expectNothingElse(t *testing.T, path string) {
	t.Helper()
	b, request := m.Machines.Backend, Request("1")
	request.ID = path
	if _, err := b.Provision(t.Context(), request); err == nil || backend.Unfinished(err) {
		t.Errorf("a volume is made of it: %v", err)
	}
	if _, err := backend.Expand(t.Context(), b, backend.ExpandRequest{ID: path, Capacity: resource.MustParse("100Gi")}); err == nil || backend.Unfinished(err) {
		t.Errorf("it grows: %v", err)
	}
	if _, can := backend.As[backend.Retainer](b); can {
		if _, err := backend.Retain(t.Context(), b, path); err == nil || backend.Unfinished(err) {
			t.Errorf("it is kept as a volume: %v", err)
		}
	}
	if err := b.Delete(t.Context(), path); backend.Unfinished(err) {
		t.Errorf("it is being deleted: %v", err)
	}
}
