package backendtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

func testAttached(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	m.mustProvision(t, Request("2"))
	got := m.mustAttach(t, id, m.Nodes[0])
	if got.Metadata[backend.DeviceMetadata] == "" || got.Metadata[backend.SerialMetadata] == "" {
		t.Errorf("the node can't find the device by %v", got.Metadata)
	}
	want := []backend.Attached{{ID: id, ProviderID: got.Metadata[backend.InstanceMetadata]}}
	if found := m.attachments(t); found != nil && !slices.Equal(found, want) {
		t.Errorf("it lists %v, and should %v", found, want)
	}
	m.mustDetach(t, id, m.Nodes[0])
	if found := m.attachments(t); len(found) > 0 {
		t.Errorf("it lists %v after the detach", found)
	}
}

func testAttachRepeated(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	first, again := m.mustAttach(t, id, m.Nodes[0]), m.mustAttach(t, id, m.Nodes[0])
	if !maps.Equal(first.Metadata, again.Metadata) {
		t.Errorf("first the metadata is %v, then %v", first.Metadata, again.Metadata)
	}
}

func testAttachCancelled(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = m.attacher.Attach(over, backend.AttachRequest{ID: id, Node: m.Nodes[0]})
	m.mustAttach(t, id, m.Nodes[0])
}

func testAttachConcurrent(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, err := m.attach(id, m.Nodes[0], false); err != nil {
				t.Errorf("attaching: %v", err)
			}
		})
	}
	calls.Wait()
	if found := m.attachments(t); found != nil && len(found) != 1 {
		t.Errorf("it is attached as %v", found)
	}
}

func testAttachRace(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	var calls sync.WaitGroup
	outcomes := make([]error, len(m.Nodes))
	for i, node := range m.Nodes {
		calls.Go(func() { _, outcomes[i] = m.attach(id, node, false) })
	}
	calls.Wait()
	won, conflicts := 0, 0
	for _, err := range outcomes {
		switch {
		case err == nil:
			won++
		case errors.Is(err, backend.Conflict):
			conflicts++
		}
	}
	if won != 1 || conflicts != 1 {
		t.Errorf("they end with %v", outcomes)
	}
}

func testAttachElsewhere(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	m.mustAttach(t, id, m.Nodes[0])
	if _, err := m.attach(id, m.Nodes[1], false); !errors.Is(err, backend.Conflict) {
		t.Errorf("the second node got the answer %v", err)
	}
	m.mustDetach(t, id, m.Nodes[0])
	m.mustAttach(t, id, m.Nodes[1])
}

func testReadersShare(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	for _, node := range m.Nodes {
		if _, err := m.attach(id, node, true); err != nil {
			t.Errorf("node %s, which only reads, got the answer %v", node.Name, err)
		}
	}
	for _, found := range m.attachments(t) {
		if !found.ReadOnly {
			t.Errorf("it lists %v", found)
		}
	}
}

func testReaderAndWriter(t *testing.T, m machines) {
	for _, readsFirst := range []bool{true, false} {
		id := m.mustProvision(t, Request("1")).Handle
		if _, err := m.attach(id, m.Nodes[0], readsFirst); err != nil {
			t.Fatalf("attaching to the first node: %v", err)
		}
		if _, err := m.attach(id, m.Nodes[1], !readsFirst); !errors.Is(err, backend.Conflict) {
			t.Errorf("the second node got the answer %v", err)
		}
		m.mustDetach(t, id, m.Nodes[0])
	}
}

func testAttachOtherWay(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	m.mustAttach(t, id, m.Nodes[0])
	if _, err := m.attach(id, m.Nodes[0], true); !errors.Is(err, backend.Conflict) {
		t.Errorf("one that is to read got the answer %v, on a node that writes", err)
	}
}

func testAttachAbsent(t *testing.T, m machines) {
	if _, err := m.attach(Request("1").ID, m.Nodes[0], false); !errors.Is(err, backend.NotFound) {
		t.Errorf("it got the answer %v", err)
	}
}

func testAttachToAbsent(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	if _, err := m.attach(id, m.Absent, false); !errors.Is(err, backend.WrongNode) {
		t.Errorf("it got the answer %v", err)
	}
}

func testDetachAbsent(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	m.mustDetach(t, id, m.Nodes[0])
	m.mustDetach(t, id, m.Absent)
	m.mustDetach(t, Request("2").ID, m.Nodes[0])
	m.mustAttach(t, id, m.Nodes[0])
	m.mustDetach(t, id, m.Nodes[0])
	m.mustDetach(t, id, m.Nodes[0])
}

func testDetachCancelled(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	m.mustAttach(t, id, m.Nodes[0])
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.attacher.Detach(over, id, m.Nodes[0])
	m.mustDetach(t, id, m.Nodes[0])
	m.mustAttach(t, id, m.Nodes[1])
}

func testDetachOne(t *testing.T, m machines) {
	id, other := m.mustProvision(t, Request("1")).Handle, m.mustProvision(t, Request("2")).Handle
	m.mustAttach(t, id, m.Nodes[0])
	m.mustAttach(t, other, m.Nodes[0])
	m.mustDetach(t, id, m.Nodes[1])
	m.mustDetach(t, other, m.Nodes[0])
	if _, err := m.attach(id, m.Nodes[1], false); !errors.Is(err, backend.Conflict) {
		t.Errorf("the volume went with others: another node got the answer %v", err)
	}
}

func testIsAttached(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	unknown := backend.NodeIdentity{Name: "unknown"}
	expect := func(when string, node backend.NodeIdentity, want bool) {
		t.Helper()
		var is bool
		err := untilFinal(func() (err error) {
			is, err = m.attacher.IsAttached(context.Background(), id, node)
			return err
		})
		if err != nil || is != want {
			t.Errorf("%s it is attached to %q: %t, %v", when, node.Name, is, err)
		}
	}
	for _, node := range []backend.NodeIdentity{m.Nodes[0], m.Absent, unknown} {
		expect("before", node, false)
	}
	m.mustAttach(t, id, m.Nodes[0])
	expect("then", m.Nodes[0], true)
	expect("then", m.Nodes[1], false)
	expect("then possibly", unknown, true)
	m.mustDetach(t, id, m.Nodes[0])
	expect("after", m.Nodes[0], false)
	expect("after", unknown, false)
}

func testDeleteAttached(t *testing.T, m machines) {
	id := m.mustProvision(t, Request("1")).Handle
	m.mustAttach(t, id, m.Nodes[0])
	if err := m.Machines.Backend.Delete(context.Background(), id); err == nil {
		t.Error("it deletes a volume that a node has")
	}
	m.mustAttach(t, id, m.Nodes[0])
	m.mustDetach(t, id, m.Nodes[0])
	m.mustDelete(t, id)
}

func testObserve(t *testing.T, m machines) {
	observer, can := backend.As[backend.NodeObserver](m.Machines.Backend)
	if !can {
		t.Skip("this backend can't observe machines")
	}
	expect := func(node backend.NodeIdentity, want backend.Machine) {
		t.Helper()
		var got backend.Machine
		err := untilFinal(func() (err error) {
			got, err = observer.ObserveNode(context.Background(), node)
			return err
		})
		if err != nil || got != want {
			t.Errorf("machine %s is observed as %q, %v, and should be as %q", node.Name, got, err, want)
		}
	}
	expect(m.Nodes[0], backend.MachineRuns)
	expect(m.Absent, backend.MachineGone)
	m.Stop(m.Nodes[0])
	expect(m.Nodes[0], backend.MachineStopped)
	m.Remove(m.Nodes[1])
	expect(m.Nodes[1], backend.MachineGone)
}
