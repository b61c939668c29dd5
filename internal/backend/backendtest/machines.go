package backendtest

import (
	"context"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

// machines are the subject of a test of attaching.
type machines struct {
	Machines
	subject
	attacher backend.Attacher
}

func (m machines) mustAttach(t *testing.T, id string, node backend.NodeIdentity) backend.Attachment {
	t.Helper()
	attachment, err := m.attach(id, node, false)
	if err != nil {
		t.Fatalf("attaching %s to %s: %v", id, node.Name, err)
	}
	return attachment
}

// attach repeats the call until its outcome is final, as the contract asks.
func (m machines) attach(id string, node backend.NodeIdentity, readOnly bool) (attachment backend.Attachment, err error) {
	err = untilFinal(func() (err error) {
		attachment, err = m.attacher.Attach(context.Background(), backend.AttachRequest{ID: id, Node: node, ReadOnly: readOnly})
		return err
	})
	return attachment, err
}

func (m machines) mustDetach(t *testing.T, id string, node backend.NodeIdentity) {
	t.Helper()
	err := untilFinal(func() error { return m.attacher.Detach(context.Background(), id, node) })
	if err != nil {
		t.Fatalf("detaching %s from %s: %v", id, node.Name, err)
	}
}

// attachments are those that the backend lists; nil where it can't.
func (m machines) attachments(t *testing.T) []backend.Attached {
	t.Helper()
	lister, can := backend.As[backend.AttachmentLister](m.Machines.Backend)
	if !can {
		return nil
	}
	found, err := lister.Attachments(context.Background())
	if err != nil {
		t.Fatalf("listing attachments: %v", err)
	}
	return append([]backend.Attached{}, found...)
}

// Machines are a backend that attaches, and the machines of a cluster.
type Machines struct {
	Backend backend.Backend
	// Nodes have machines that run. Absent has none.
	Nodes  [2]backend.NodeIdentity
	Absent backend.NodeIdentity
	// Existing is the path of a disk that Stowage didn't make, and that the backend attaches. Empty:
	// it attaches no such disks.
	Existing string
	// Stop stops the machine of a node, and Remove removes it. Nil: the backend can't observe
	// machines.
	Stop, Remove func(node backend.NodeIdentity)
}
