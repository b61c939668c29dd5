// Package answer checks and bounds what a driver answers about snapshots: a driver is another program, which may be wrong.
package answer

import (
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// MaxHandle bounds an id that a driver gives, in bytes: it is recorded in objects.
const MaxHandle = 4096

// Snapshot checks what a driver answers a method about a snapshot. Without an id that can be used a repeat may have a
// better one.
func Snapshot(driver, method string, made *csispec.Snapshot) (*backend.Snapshot, error) {
	handle := made.GetSnapshotId()
	if err := checkID(driver, method, "snapshot_id", handle); err != nil {
		return nil, err
	}
	created := time.Time{}
	if made.GetCreationTime().IsValid() {
		created = made.GetCreationTime().AsTime()
	}
	return &backend.Snapshot{
		Handle: handle, Volume: made.GetSourceVolumeId(), Created: created, Ready: made.GetReadyToUse(),
		RestoreSize: *resource.NewQuantity(max(0, made.GetSizeBytes()), resource.BinarySI),
	}, nil
}

// Listed checks what ListSnapshots says of a snapshot. It alone says which group a snapshot is of.
func Listed(driver string, listed *csispec.Snapshot) (*backend.Snapshot, error) {
	found, err := Snapshot(driver, "ListSnapshots", listed)
	if err != nil || listed.GetGroupSnapshotId() == "" {
		return found, err
	}
	found.Group = listed.GetGroupSnapshotId()
	return found, checkID(driver, "ListSnapshots", "group_snapshot_id", found.Group)
}

// Group checks what a driver answers a method about a group snapshot. Each handle of it is recorded.
func Group(driver, method string, made *csispec.VolumeGroupSnapshot) (*backend.GroupSnapshot, error) {
	group := &backend.GroupSnapshot{Handle: made.GetGroupSnapshotId(), Ready: made.GetReadyToUse()}
	if err := checkID(driver, method, "group_snapshot_id", group.Handle); err != nil {
		return nil, err
	}
	if number := len(made.GetSnapshots()); number > backend.MaxGroup {
		return nil, backend.InProgress.Errorf("driver %s answers %s with %d snapshots, and not with %d at most: the call is repeated", driver, method, number, backend.MaxGroup)
	}
	if made.GetCreationTime().IsValid() {
		group.Created = made.GetCreationTime().AsTime()
	}
	for _, of := range made.GetSnapshots() {
		one, err := Snapshot(driver, method, of)
		if err != nil {
			return nil, err
		}
		group.Members = append(group.Members, *one)
	}
	return group, nil
}

func checkID(driver, method, field, id string) error {
	if id == "" || len(id) > MaxHandle {
		return backend.InProgress.Errorf("driver %s answers %s with a %s of %d bytes, and not of 1 to %d: the call is repeated", driver, method, field, len(id), MaxHandle)
	}
	return nil
}
