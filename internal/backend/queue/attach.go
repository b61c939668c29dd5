package queue

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Attach asks for a volume on a node. Nodes take turns; nothing else happens to the
// volume meanwhile.
func (s *served) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	attacher, err := s.attacher()
	if err != nil {
		return backend.Attachment{}, err
	}
	return s.askToAttach(ctx, attacher, request)
}

func (s *served) askToAttach(ctx context.Context, attacher backend.Attacher, request backend.AttachRequest) (backend.Attachment, error) {
	asked := wanted{node: identified(request.Node)}
	if request.ReadOnly {
		asked.access = "ReadOnly"
	}
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question:  question{attaching, s.lane.Version, asked},
		key:       key{id: request.ID, node: request.Node.Name},
		namespace: turnOf(request.Node),
		run: func(ctx context.Context) (any, error) {
			return attacher.Attach(ctx, request)
		},
	})
	attached, _ := answer.(backend.Attachment)
	return attached, err
}

// Detach asks for a volume to be taken from a node.
func (s *served) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	attacher, err := s.attacher()
	if err != nil {
		return err
	}
	return s.askToDetach(ctx, attacher, id, node)
}

// IsAttached asks whether a node has a volume, once nothing else happens to the volume.
func (s *served) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	attacher, err := s.attacher()
	if err != nil {
		return false, err
	}
	return s.askWhetherAttached(ctx, attacher, id, node)
}

func (s *served) askWhetherAttached(ctx context.Context, attacher backend.Attacher, id string, node backend.NodeIdentity) (bool, error) {
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question:  question{inspection, s.lane.Version, wanted{node: identified(node)}},
		key:       key{id: id, node: node.Name},
		namespace: turnOf(node),
		run: func(ctx context.Context) (any, error) {
			return attacher.IsAttached(ctx, id, node)
		},
	})
	is, _ := answer.(bool)
	return is, err
}

// EndedDetach returns the answer to an earlier Detach that no caller has had, and whether
// there is one: Queued where it is still to come. It begins no call. A caller that decides anew
// before hearing the answer may decide on what the detach has changed.
func EndedDetach(attacher backend.Attacher, id string, node backend.NodeIdentity) (asked bool, err error) {
	on, dispatched := attacher.(*served)
	if about, is := attacher.(existing); is {
		on, dispatched = about.on, true
	}
	if !dispatched {
		return false, nil
	}
	return on.dispatcher.ended(on, on.detachOf(node), key{id: id, node: node.Name})
}

func (s *served) detachOf(node backend.NodeIdentity) question {
	return question{detaching, s.lane.Version, wanted{node: identified(node)}}
}

func (s *served) askToDetach(ctx context.Context, attacher backend.Attacher, id string, node backend.NodeIdentity) error {
	_, err := s.dispatcher.ask(ctx, s, &call{
		question:  s.detachOf(node),
		key:       key{id: id, node: node.Name},
		namespace: turnOf(node),
		run: func(ctx context.Context) (any, error) {
			return nil, attacher.Detach(ctx, id, node)
		},
	})
	return err
}

// ObserveNode asks what became of a node's machine: once for all who ask at that time.
func (s *served) ObserveNode(ctx context.Context, node backend.NodeIdentity) (backend.Machine, error) {
	observer, can := backend.As[backend.NodeObserver](s.Backend)
	if !can {
		return backend.MachineUnknown, nil
	}
	answer, err := s.dispatcher.ask(ctx, s, &call{
		question:  question{observation, s.lane.Version, wanted{node: identified(node)}},
		key:       key{node: identified(node)},
		namespace: turnOf(node),
		run: func(ctx context.Context) (any, error) {
			return observer.ObserveNode(ctx, node)
		},
	})
	observed, _ := answer.(backend.Machine)
	return observed, err
}

func (s *served) attacher() (backend.Attacher, error) {
	attacher, can := backend.As[backend.Attacher](s.Backend)
	if !can {
		return nil, backend.Invalid.Errorf("%s doesn't attach volumes", s.lane.Backend)
	}
	return attacher, nil
}

// identified is a node and its machine: another may have the node's name.
func identified(node backend.NodeIdentity) string { return node.Name + " " + node.ProviderID }

// turnOf is what the calls for a node take turns by, which no namespace is called.
func turnOf(node backend.NodeIdentity) string { return "node/" + node.Name }
