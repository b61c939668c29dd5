package backend

import (
	"context"

	"github.com/go-logr/logr"
)

// Observe returns what became of a node's machine, as a backend knows it. Queued and
// InProgress are returned: the answer is still to come. All other errors are logged, and the
// machine is MachineUnknown, as for a backend that isn't a NodeObserver: if the cloud cannot
// answer, the node's taint and the time still decide.
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
