package csicontroller

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// CreateSnapshot implements csispec.ControllerServer. A volume of a claim has the snapshots of VolumeSnapshots
// only.
func (s *Service) CreateSnapshot(ctx context.Context, req *csispec.CreateSnapshotRequest) (*csispec.CreateSnapshotResponse, error) {
	volume := req.GetSourceVolumeId()
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	switch {
	case volume == "":
		return nil, missing("source_volume_id")
	case !named.IsVolume(volume):
		return nil, notOurs(volume)
	}
	owner := named.UID(s.Cluster, s.Name, "snapshot", req.GetName())
	request := backend.SnapshotRequest{
		ID: backend.SnapshotID(owner), Owner: owner, Namespace: namespace, Volume: volume, Parameters: withoutMetadata(req.GetParameters()),
	}
	var made *backend.Snapshot
	err := s.ofSnapshot(ctx, request.ID, func(snapshotter backend.Snapshotter) error {
		return finish(ctx, func(ctx context.Context) (err error) {
			made, err = snapshotter.CreateSnapshot(ctx, request)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	response := &csispec.Snapshot{SnapshotId: made.Handle, SourceVolumeId: volume, SizeBytes: made.RestoreSize.Value(), ReadyToUse: made.Ready}
	if !made.Created.IsZero() {
		response.CreationTime = timestamppb.New(made.Created)
	}
	return &csispec.CreateSnapshotResponse{Snapshot: response}, nil
}

// ofSnapshot makes a call about a snapshot. No second one comes at the same time.
func (s *Service) ofSnapshot(ctx context.Context, id string, call func(snapshotter backend.Snapshotter) error) error {
	return s.alone(ctx, id, func(b storage) error {
		snapshotter, can := backend.As[backend.Snapshotter](b.Backend)
		if !can {
			return unimplemented("the storage can't make snapshots")
		}
		return call(snapshotter)
	})
}

// DeleteSnapshot implements csispec.ControllerServer.
func (s *Service) DeleteSnapshot(ctx context.Context, req *csispec.DeleteSnapshotRequest) (*csispec.DeleteSnapshotResponse, error) {
	id := req.GetSnapshotId()
	if id == "" {
		return nil, missing("snapshot_id")
	}
	response := &csispec.DeleteSnapshotResponse{}
	if may, err := checkRemovable(id, named.IsSnapshot(id)); !may {
		return response, err
	}
	return response, s.ofSnapshot(ctx, id, func(snapshotter backend.Snapshotter) error {
		return finish(ctx, func(ctx context.Context) error { return snapshotter.DeleteSnapshot(ctx, id) })
	})
}
