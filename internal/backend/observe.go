package backend

import (
	"context"

	"github.com/go-logr/logr"
)

// Observe returns the state of a node's machine. Queued and InProgress are returned: the answer is
// still to come. It logs all other errors, and returns MachineUnknown, as for a backend that isn't a
// NodeObserver. If the cloud cannot answer, the node's taint and the timeout still apply.
func Observe(ctx context.Context, b Backend, node NodeIdentity) (Machine, error) {
	observer, can := As[NodeObserver](b)
	if !can {
		return MachineUnknown, nil
	}
	machine, err := observer.ObserveNode(ctx, node)
	switch {
	case Unfinished(err):
		return MachineUnknown, err
	case err != nil:
		logr.FromContextOrDiscard(ctx).Error(err, "observing a machine", "node", node.Name)
		return MachineUnknown, nil
	}
	return machine, nil
}
