package csicontroller

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/volume"
)

// ControllerPublishVolume implements csispec.ControllerServer. The id of a node is the name of its Node object.
func (s *Service) ControllerPublishVolume(ctx context.Context, req *csispec.ControllerPublishVolumeRequest) (*csispec.ControllerPublishVolumeResponse, error) {
	switch {
	case req.GetVolumeId() == "":
		return nil, missing("volume_id")
	case req.GetNodeId() == "":
		return nil, missing("node_id")
	case req.GetVolumeCapability() == nil:
		return nil, missing("volume_capability")
	}
	of, err := useOf([]*csispec.VolumeCapability{req.GetVolumeCapability()})
	if err != nil {
		return nil, err
	}
	response := &csispec.ControllerPublishVolumeResponse{}
	return response, s.ofVolume(ctx, req.GetVolumeId(), func(b storage) error {
		attacher, err := b.attacher()
		if err != nil {
			return err
		}
		node, err := s.identity(ctx, req.GetNodeId())
		if err != nil {
			return err
		}
		made, err := attach(ctx, attacher, backend.AttachRequest{
			ID: req.GetVolumeId(), Volume: of.volume(req.GetVolumeId()), Node: node, ReadOnly: req.GetReadonly() || volume.OnlyReaders(of.access),
		})
		response.PublishContext = made.Metadata
		return err
	})
}

// volume is the object that a volume for this use would have: it decides how many nodes can have the volume.
func (u use) volume(id string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{VolumeMode: &u.mode, AccessModes: u.access}}
	pv.Name = id
	return pv
}

func (s storage) attacher() (backend.Attacher, error) {
	attacher, can := backend.As[backend.Attacher](s.Backend)
	if !can {
		return nil, unimplemented("volumes of this driver aren't attached")
	}
	return attacher, nil
}

// attach attaches a volume. A volume that the node has in another way already exists there; one that another
// node has must be detached first.
func attach(ctx context.Context, attacher backend.Attacher, request backend.AttachRequest) (made backend.Attachment, err error) {
	err = finish(ctx, func(ctx context.Context) (err error) {
		made, err = attacher.Attach(ctx, request)
		return err
	})
	if !errors.Is(err, backend.Conflict) {
		return made, err
	}
	if here, unknown := attacher.IsAttached(ctx, request.ID, request.Node); here || unknown != nil {
		return made, err
	}
	return made, precondition("%s", err)
}

// identity is how the backend finds a node.
func (s *Service) identity(ctx context.Context, name string) (backend.NodeIdentity, error) {
	node := &corev1.Node{}
	if err := s.Live.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return backend.NodeIdentity{}, backend.NotFound.Errorf("there is no node %.253q", name)
		}
		return backend.NodeIdentity{}, backend.Unavailable.Errorf("reading node %.253q: %w", name, err)
	}
	return backend.NodeIdentity{Name: node.Name, ProviderID: node.Spec.ProviderID}, nil
}

// ControllerUnpublishVolume implements csispec.ControllerServer. Without a node, the volume is detached from all
// that have it. The caller has unmounted it before.
func (s *Service) ControllerUnpublishVolume(ctx context.Context, req *csispec.ControllerUnpublishVolumeRequest) (*csispec.ControllerUnpublishVolumeResponse, error) {
	id := req.GetVolumeId()
	if id == "" {
		return nil, missing("volume_id")
	}
	response := &csispec.ControllerUnpublishVolumeResponse{}
	if may, err := checkRemovable(id, named.IsVolume(id)); !may {
		return response, err
	}
	return response, s.ofVolume(ctx, id, func(b storage) error {
		attacher, err := b.attacher()
		if err != nil {
			return err
		}
		if err := s.unreferenced(ctx, b, id); err != nil {
			return err
		}
		nodes, err := s.nodesOf(ctx, b, id, req.GetNodeId())
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if err := finish(ctx, func(ctx context.Context) error { return attacher.Detach(ctx, id, node) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// nodesOf are those that a volume is to be detached from. Of a node without an object the name is known.
func (s *Service) nodesOf(ctx context.Context, b storage, id, name string) (nodes []backend.NodeIdentity, err error) {
	if name != "" {
		node, err := s.identity(ctx, name)
		if errors.Is(err, backend.NotFound) {
			return []backend.NodeIdentity{{Name: name}}, nil
		}
		return []backend.NodeIdentity{node}, err
	}
	lister, can := backend.As[backend.AttachmentLister](b.Backend)
	if !can {
		return nil, missing("node_id")
	}
	all, err := lister.Attachments(ctx)
	for _, attached := range all {
		if attached.ID == id {
			nodes = append(nodes, backend.NodeIdentity{ProviderID: attached.ProviderID})
		}
	}
	return nodes, err
}
