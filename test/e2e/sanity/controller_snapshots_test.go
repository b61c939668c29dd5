package sanity_test

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stowage-dev/stowage/internal/backend"
)

// snapshot is what Kubernetes would keep of a snapshot.
type snapshot struct{ name, volume string }

// CreateSnapshot has the backend make a snapshot, for a VolumeSnapshot that each name stands for.
func (s *controller) CreateSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	snapshotter, err := backend.SnapshotterOf(s.Backend, s.Name)
	if err != nil {
		return nil, toStatus(err)
	}
	if req.GetName() == "" {
		return nil, missing("name")
	}
	of := req.GetSourceVolumeId()
	if _, err := s.find(of); err != nil {
		return nil, err
	}
	name := "snapshot " + req.GetName()
	owner := s.claimOf(name)
	request := backend.SnapshotRequest{ID: backend.SnapshotID(owner), Owner: owner, Namespace: namespace, Volume: of, Parameters: req.GetParameters()}
	var made *backend.Snapshot
	err = s.finished(ctx, func(ctx context.Context) (err error) {
		made, err = snapshotter.CreateSnapshot(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.snapshots[made.Handle] = snapshot{name, of}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: made.Handle, SourceVolumeId: of, SizeBytes: made.RestoreSize.Value(), CreationTime: timestamppb.New(made.Created), ReadyToUse: made.Ready,
	}}, nil
}

// DeleteSnapshot has the backend remove a snapshot. That there is none is a success.
func (s *controller) DeleteSnapshot(ctx context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := req.GetSnapshotId()
	if id == "" {
		return nil, missing("snapshot_id")
	}
	snapshotter, err := backend.SnapshotterOf(s.Backend, s.Name)
	if err != nil {
		return nil, toStatus(err)
	}
	known, made := s.snapshots[id]
	if !made {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if err := s.finished(ctx, func(ctx context.Context) error { return snapshotter.DeleteSnapshot(ctx, id) }); err != nil {
		return nil, err
	}
	delete(s.snapshots, id)
	delete(s.claims, known.name)
	return &csi.DeleteSnapshotResponse{}, nil
}
