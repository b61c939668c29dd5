package queue

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Attach attaches a volume to a node. Nodes get slots in turn; no other call for the volume runs at the same time.
func (s *served) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	return submit[backend.Attachment](ctx, s, s.byAttacher(callOf(request), func(ctx context.Context, attacher backend.Attacher) (any, error) {
		return attacher.Attach(ctx, request)
	}))
}

func callOf(request backend.AttachRequest) *call {
	c := attachCall(attach, request.ID, request.Node)
	if request.ReadOnly {
		c.parameters.access = "ReadOnly"
	}
	return c
}

// Detach detaches a volume from a node.
func (s *served) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	_, err := submit[any](ctx, s, s.byAttacher(attachCall(detach, id, node), func(ctx context.Context, attacher backend.Attacher) (any, error) {
		return nil, attacher.Detach(ctx, id, node)
	}))
	return err
}

// IsAttached reports whether a node has a volume, once no other call for the volume runs.
func (s *served) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	return submit[bool](ctx, s, s.byAttacher(attachCall(inspect, id, node), func(ctx context.Context, attacher backend.Attacher) (any, error) {
		return attacher.IsAttached(ctx, id, node)
	}))
}

// EndedAttach returns the answer to an earlier Attach that no caller has had, and whether there is one:
// Queued where it is still to come. It begins no call.
func EndedAttach(attacher backend.Attacher, request backend.AttachRequest) (attached backend.Attachment, found bool, err error) {
	answer, found, err := collect(attacher, callOf(request))
	attached, _ = answer.(backend.Attachment)
	return attached, found, err
}

// EndedDetach returns the answer to an earlier Detach that no caller has had, and whether there is
// one: Queued where it is still to come. It begins no call. A caller that decides again without the
// answer may decide on a state that the detach has changed.
func EndedDetach(attacher backend.Attacher, id string, node backend.NodeIdentity) (found bool, err error) {
	_, found, err = collect(attacher, attachCall(detach, id, node))
	return found, err
}

func collect(attacher backend.Attacher, c *call) (answer any, found bool, err error) {
	s, queued := attacher.(*served)
	if !queued || s.direct {
		return nil, false, nil
	}
	c.version = s.target.Version
	return s.queue.collect(s, c.subject, c.key)
}

// ObserveNode returns the state of a node's machine, with one call for all callers at that time.
func (s *served) ObserveNode(ctx context.Context, node backend.NodeIdentity) (backend.Machine, error) {
	c := attachCall(observe, "", node)
	c.key.node = nodeKey(node)
	c.run = func(ctx context.Context) (any, error) {
		observer, can := backend.As[backend.NodeObserver](s.Backend)
		if !can {
			return backend.MachineUnknown, nil
		}
		return observer.ObserveNode(ctx, node)
	}
	return submit[backend.Machine](ctx, s, c)
}

// Attachments lists the attached volumes. It is about all volumes, so it takes no slot and its
// caller waits for it.
func (s *served) Attachments(ctx context.Context) ([]backend.Attached, error) {
	lister, can := backend.As[backend.AttachmentLister](s.Backend)
	if !can {
		return nil, s.noAttacher()
	}
	answer, err := s.queue.measure(ctx, &call{
		subject: subject{operation: list}, metric: s.target.Metric,
		run: func(ctx context.Context) (any, error) { return lister.Attachments(ctx) },
	})
	found, _ := answer.([]backend.Attached)
	return found, err
}

// Publications is Attachments for a driver's own ids of nodes.
func (s *served) Publications(ctx context.Context, of map[string]bool) (map[string][]string, error) {
	lister, can := backend.As[backend.PublicationLister](s.Backend)
	if !can {
		return nil, s.noAttacher()
	}
	answer, err := s.queue.measure(ctx, &call{
		subject: subject{operation: list}, metric: s.target.Metric,
		run: func(ctx context.Context) (any, error) { return lister.Publications(ctx, of) },
	})
	found, _ := answer.(map[string][]string)
	return found, err
}

func attachCall(what operation, id string, node backend.NodeIdentity) *call {
	return &call{
		subject:   subject{operation: what, parameters: parameters{node: nodeKey(node)}},
		key:       key{id: id, node: node.Name},
		namespace: "node/" + node.Name, // no namespace has such a name
	}
}

// byAttacher makes a call run on the backend's Attacher.
func (s *served) byAttacher(c *call, do func(context.Context, backend.Attacher) (any, error)) *call {
	c.run = func(ctx context.Context) (any, error) {
		attacher, can := backend.As[backend.Attacher](s.Backend)
		if !can {
			return nil, s.noAttacher()
		}
		return do(ctx, attacher)
	}
	return c
}

func (s *served) noAttacher() error {
	return backend.Invalid.Errorf("%s doesn't attach volumes", s.target.Name)
}

// nodeKey is a node and its machine: another machine may have the node's name.
func nodeKey(node backend.NodeIdentity) string { return node.Name + " " + node.ProviderID }
