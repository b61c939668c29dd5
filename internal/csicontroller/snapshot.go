package csicontroller

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// CreateSnapshot implements csispec.ControllerServer. The volume is one that a call made, or that of a claim. The id
// follows from the name, and is none of the manager's own snapshots, also where both are for one VolumeSnapshot.
func (s *Service) CreateSnapshot(ctx context.Context, req *csispec.CreateSnapshotRequest) (*csispec.CreateSnapshotResponse, error) {
	volume := req.GetSourceVolumeId()
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	if volume == "" {
		return nil, missing("source_volume_id")
	}
	owner := named.UID(s.Cluster, s.Name, "snapshot", req.GetName())
	request := backend.SnapshotRequest{
		ID: backend.SnapshotID(owner), Owner: owner, Namespace: namespace, Volume: volume, Parameters: withoutMetadata(req.GetParameters()),
	}
	var made *backend.Snapshot
	err := s.ofSnapshot(ctx, request.ID, func(b storage, snapshotter backend.Snapshotter) (err error) {
		if !named.IsVolume(volume) {
			request.Namespace, err = s.claimNamespace(ctx, b, volume, req.GetName())
		}
		if errors.Is(err, backend.NotFound) {
			made, err = b.findRepeated(ctx, snapshotter, request, err)
			return err
		}
		if err != nil {
			return err
		}
		return finish(ctx, func(ctx context.Context) (err error) {
			made, err = snapshotter.CreateSnapshot(ctx, request)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	made.Volume = volume
	return &csispec.CreateSnapshotResponse{Snapshot: answer(made)}, nil
}

// findRepeated returns the snapshot that an earlier call with a request made, though no claim has the volume any more.
func (s storage) findRepeated(ctx context.Context, snapshotter backend.Snapshotter, request backend.SnapshotRequest, unknown error) (*backend.Snapshot, error) {
	held, err := s.find(ctx, func(held backend.Held) bool { return held.Snapshot == request.Owner })
	if errors.Is(err, backend.NotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	found, err := snapshotter.FindSnapshot(ctx, held.ID)
	if err == nil && found.Volume != request.Volume {
		err = backend.Conflict.Errorf("snapshot %s is of volume %.200q", held.ID, found.Volume)
	}
	return found, err
}

// answer describes a snapshot to a caller.
func answer(of *backend.Snapshot) *csispec.Snapshot {
	said := &csispec.Snapshot{SnapshotId: of.Handle, SourceVolumeId: of.Volume, SizeBytes: of.RestoreSize.Value(), ReadyToUse: of.Ready}
	if !of.Created.IsZero() {
		said.CreationTime = timestamppb.New(of.Created)
	}
	return said
}

// ofSnapshot makes a call about a snapshot. No second one comes at the same time.
func (s *Service) ofSnapshot(ctx context.Context, id string, call func(b storage, snapshotter backend.Snapshotter) error) error {
	return s.alone(ctx, id, func(b storage) error {
		snapshotter, can := backend.As[backend.Snapshotter](b.Backend)
		if !can {
			return unimplemented("the storage can't make snapshots")
		}
		return call(b, snapshotter)
	})
}

// DeleteSnapshot implements csispec.ControllerServer. It deletes what calls made, and csi-snapshotter needs no more: each
// content that it made names such a snapshot. One of the manager's stays, because its own VolumeSnapshotContent may need it.
func (s *Service) DeleteSnapshot(ctx context.Context, req *csispec.DeleteSnapshotRequest) (*csispec.DeleteSnapshotResponse, error) {
	id := req.GetSnapshotId()
	if id == "" {
		return nil, missing("snapshot_id")
	}
	response := &csispec.DeleteSnapshotResponse{}
	if may, err := checkRemovable(id, named.IsSnapshot(id)); !may {
		return response, err
	}
	return response, s.ofSnapshot(ctx, id, func(_ storage, snapshotter backend.Snapshotter) error {
		return finish(ctx, func(ctx context.Context) error { return snapshotter.DeleteSnapshot(ctx, id) })
	})
}

// ListSnapshots implements csispec.ControllerServer, with the tokens of ListVolumes. It lists the snapshots that calls made. One of
// the manager's it describes by its id alone: csi-snapshotter asks so about a content that names it.
func (s *Service) ListSnapshots(ctx context.Context, req *csispec.ListSnapshotsRequest) (*csispec.ListSnapshotsResponse, error) {
	after := req.GetStartingToken()
	if err := checkPage(after, named.IsSnapshot, req.GetMaxEntries()); err != nil {
		return nil, err
	}
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	snapshotter, can := backend.As[backend.Snapshotter](b.Backend)
	if !can || !is[backend.Lister](b.Backend) {
		return nil, unimplemented("the storage can't list its snapshots")
	}
	ids, more := []string{req.GetSnapshotId()}, false
	if ids[0] == "" {
		if ids, more, err = b.page(ctx, after, pageOf(req.GetMaxEntries(), maxSnapshots), isSnapshot); err != nil {
			return nil, err
		}
	}
	response := &csispec.ListSnapshotsResponse{}
	for _, id := range ids {
		found, err := cut(ctx, snapshotter, id)
		if err != nil {
			return nil, err
		}
		if found != nil && (req.GetSourceVolumeId() == "" || found.Volume == req.GetSourceVolumeId()) {
			response.Entries = append(response.Entries, &csispec.ListSnapshotsResponse_Entry{Snapshot: answer(found)})
		}
	}
	if more {
		response.NextToken = ids[len(ids)-1]
	}
	return response, nil
}

// cut finds a snapshot of this StorageBackend; nil for none. One that has no content yet isn't listed, as the interface
// asks for.
func cut(ctx context.Context, snapshotter backend.Snapshotter, id string) (*backend.Snapshot, error) {
	found, err := snapshotter.FindSnapshot(ctx, id)
	switch {
	case errors.Is(err, backend.NotFound) || errors.Is(err, backend.Conflict) || errors.Is(err, backend.Invalid):
		return nil, nil //nolint:nilnil // it is gone, another owner's, or the id is none
	case err != nil:
		return nil, err
	case found.Created.IsZero() || found.Volume == "":
		return nil, nil //nolint:nilnil // it is being made, or another owner's
	}
	return found, nil
}
