package sanity_test

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
)

// ControllerPublishVolume has the backend attach a volume to a node.
func (s *controller) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	attacher, err := s.attacher()
	switch {
	case err != nil:
		return nil, err
	case req.GetVolumeId() == "":
		return nil, missing("volume_id")
	case req.GetNodeId() == "":
		return nil, missing("node_id")
	case req.GetVolumeCapability() == nil:
		return nil, missing("volume_capability")
	}
	known, err := s.find(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	node, err := s.identity(ctx, req.GetNodeId())
	if err != nil {
		return nil, err
	}
	request := backend.AttachRequest{ID: known.made.Handle, Node: node, ReadOnly: req.GetReadonly()}
	return s.attach(ctx, attacher, known, request)
}

func (s *controller) attacher() (backend.Attacher, error) {
	attacher, can := backend.As[backend.Attacher](s.Backend)
	if !can {
		return nil, status.Error(codes.Unimplemented, "volumes of this driver aren't attached")
	}
	return attacher, nil
}

func (s *controller) attach(ctx context.Context, attacher backend.Attacher, known *volume, request backend.AttachRequest) (*csi.ControllerPublishVolumeResponse, error) {
	var made backend.Attachment
	err := s.finished(ctx, func(ctx context.Context) (err error) {
		made, err = attacher.Attach(ctx, request)
		if _, here := known.on[request.Node.Name]; errors.Is(err, backend.Conflict) && !here && len(known.on) > 0 {
			return status.Error(codes.FailedPrecondition, err.Error())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	known.on[request.Node.Name] = request.ReadOnly
	return &csi.ControllerPublishVolumeResponse{PublishContext: made.Metadata}, nil
}

// identity is how the backend finds a node.
func (s *controller) identity(ctx context.Context, name string) (backend.NodeIdentity, error) {
	node, err := s.Node(ctx, name)
	switch {
	case err != nil:
		return backend.NodeIdentity{}, toStatus(err)
	case node == nil:
		return backend.NodeIdentity{}, toStatus(backend.WrongNode.Errorf("there is no node %s", name))
	}
	return backend.NodeIdentity{Name: node.Name, ProviderID: node.Spec.ProviderID}, nil
}

// ControllerUnpublishVolume has the backend detach a volume from a node, or from all that
// have it where no node is named. What isn't attached is a success.
func (s *controller) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	attacher, err := s.attacher()
	switch {
	case err != nil:
		return nil, err
	case req.GetVolumeId() == "":
		return nil, missing("volume_id")
	}
	known, found := s.volumes[req.GetVolumeId()]
	if !found {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	names := []string{req.GetNodeId()}
	if req.GetNodeId() == "" {
		names = slices.Collect(maps.Keys(known.on))
	}
	for _, name := range names {
		if err := s.detach(ctx, attacher, known, name); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (s *controller) detach(ctx context.Context, attacher backend.Attacher, known *volume, name string) error {
	node, err := s.identity(ctx, name)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err == nil {
		err = s.finished(ctx, func(ctx context.Context) error { return attacher.Detach(ctx, known.made.Handle, node) })
	}
	if err == nil {
		delete(known.on, name)
	}
	return err
}
