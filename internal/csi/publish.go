package csi

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// targetField is the field of requests with the path at which one pod sees a volume.
const targetField = "target_path"

// publication is what a call does to a volume at a pod's path: effect.Mounted or Unmounted.
type publication struct{ does, volume, target string }

// aloneLogged is alone for work that makes a volume visible to a pod, or ends that. It logs the
// effect: kubelets repeat calls, and a repeated one has none.
func (n *Node) aloneLogged(ctx context.Context, call publication, work func(context.Context) error) error {
	return n.alone(ctx, call.volume, func(ctx context.Context) error {
		began, effective := time.Now(), n.hasEffect(ctx, call)
		if err := work(ctx); err != nil || !effective {
			return err
		}
		values := []any{effect.Volume, call.volume}
		if pod := mounting.PodOf(call.target); pod != "" {
			values = append(values, effect.Pod, filepath.Base(pod))
		}
		effect.LogValues(ctx, call.does, began, values)
		return nil
	})
}

// hasEffect reports whether a call changes anything. A pod's own volumes have no records to check.
func (n *Node) hasEffect(ctx context.Context, call publication) bool {
	if inliner, serves := n.driver.(drivers.Inliner); serves && inliner.IsInline(call.volume) {
		return true
	}
	absent := errors.Is(n.driver.Check(ctx, call.volume, call.target), volumes.ErrNotFound)
	return absent == (call.does == effect.Mounted)
}

// NodePublishVolume implements csispec.NodeServer.
func (n *Node) NodePublishVolume(ctx context.Context, request *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	err := cmp.Or(checkID(id), n.checkMountPath(targetField, target), checkCapability(request.GetVolumeCapability()))
	if err != nil {
		return nil, err
	}
	if request.GetVolumeContext()[ephemeralKey] == "true" {
		err = n.publishInline(ctx, request)
	} else {
		err = n.publishStaged(ctx, request)
	}
	return &csispec.NodePublishVolumeResponse{}, err
}

func (n *Node) publishStaged(ctx context.Context, request *csispec.NodePublishVolumeRequest) error {
	id, staging, target := request.GetVolumeId(), request.GetStagingTargetPath(), request.GetTargetPath()
	if staging == "" {
		return status.Errorf(codes.FailedPrecondition, "%s is missing: volumes of %s are staged first", stagingField, n.driver.Name())
	}
	if err := cmp.Or(n.checkClaimed(id), n.checkMountPath(stagingField, staging)); err != nil {
		return err
	}
	spec, err := specOf(n.driver.Name(), request)
	if err != nil {
		return err
	}
	spec.Access = accessOf(request.GetVolumeCapability(), request.GetReadonly())
	return n.aloneLogged(ctx, publication{effect.Mounted, id, target}, func(ctx context.Context) error { return n.driver.Publish(ctx, spec, staging, target) })
}

func (n *Node) publishInline(ctx context.Context, request *csispec.NodePublishVolumeRequest) error {
	inliner, serves := n.driver.(drivers.Inliner)
	if !serves {
		return status.Errorf(codes.InvalidArgument, "driver %s has no volumes that pods name themselves: use a claim", n.driver.Name())
	}
	id, target := request.GetVolumeId(), request.GetTargetPath()
	// NodeUnpublishVolume knows such volumes by their ids, and removes their data.
	if !inliner.IsInline(id) {
		return status.Errorf(codes.InvalidArgument, "volume_id %q isn't that of a pod's own volume", id)
	}
	spec, err := inlineOf(n.driver.Name(), request)
	if err != nil {
		return err
	}
	return n.aloneLogged(ctx, publication{effect.Mounted, id, target}, func(ctx context.Context) error { return inliner.PublishInline(ctx, spec, id, target) })
}

// NodeUnpublishVolume implements csispec.NodeServer.
func (n *Node) NodeUnpublishVolume(ctx context.Context, request *csispec.NodeUnpublishVolumeRequest) (*csispec.NodeUnpublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	if err := cmp.Or(checkID(id), n.checkMountPath(targetField, target)); err != nil {
		return nil, err
	}
	unpublish := n.driver.Unpublish
	if inliner, serves := n.driver.(drivers.Inliner); serves && inliner.IsInline(id) {
		unpublish = inliner.UnpublishInline
	}
	err := n.aloneLogged(ctx, publication{effect.Unmounted, id, target}, func(ctx context.Context) error { return unpublish(ctx, id, target) })
	return &csispec.NodeUnpublishVolumeResponse{}, err
}
