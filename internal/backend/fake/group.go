package fake

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.GroupSnapshotter = (*CSI)(nil)

// groupPrefix begins the handle of each group snapshot.
const groupPrefix = "groups/"

// CreateGroupSnapshot keeps the request, or fails as FailNext and HalfNext said. The members are snapshots of the backend.
func (d *CSI) CreateGroupSnapshot(ctx context.Context, request backend.GroupSnapshotRequest) (*backend.GroupSnapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	if err := d.of.begin(ctx, "CreateGroupSnapshot "+request.ID); err != nil {
		return nil, err
	}
	defer d.of.mu.Unlock()
	handle := groupPrefix + request.ID
	made, exists := d.groups[handle]
	if exists && !slices.Equal(made.Volumes, request.Volumes) {
		return nil, backend.Conflict.Errorf("group snapshot %s is of volumes %q", request.ID, made.Volumes)
	}
	for _, volume := range request.Volumes {
		id, err := idOf(volume)
		if err != nil {
			return nil, err
		}
		of, there := d.of.volumes[id]
		if !exists && !there {
			return nil, backend.NotFound.Errorf("there is no volume %s", id)
		}
		if !exists {
			d.of.snapshots[memberOf(request, volume)] = kept{backend.SnapshotRequest{ID: request.ID, Volume: id, Parameters: request.Parameters}, of.Capacity}
		}
	}
	d.groups[handle] = request
	return d.foundGroup(handle), d.nextHalf()
}

func memberOf(request backend.GroupSnapshotRequest, volume string) string {
	return snapshotPrefix + request.ID + " of " + strings.TrimPrefix(volume, handlePrefix)
}

// foundGroup is the answer about a group snapshot.
func (d *CSI) foundGroup(handle string) *backend.GroupSnapshot {
	request := d.groups[handle]
	group := &backend.GroupSnapshot{Handle: handle, Created: time.Unix(1, 0), Ready: !d.of.uploading}
	for _, volume := range request.Volumes {
		member := d.of.found(memberOf(request, volume))
		member.Volume = volume
		group.Members = append(group.Members, *member)
	}
	return group
}

// DeleteGroupSnapshot drops a group snapshot and its members, or fails as FailNext and HalfNext said.
func (d *CSI) DeleteGroupSnapshot(ctx context.Context, handle string, members []string) error {
	if err := d.of.begin(ctx, "DeleteGroupSnapshot "+strings.TrimPrefix(handle, groupPrefix)); err != nil {
		return err
	}
	defer d.of.mu.Unlock()
	if _, exists := d.groups[handle]; exists {
		for _, member := range d.foundGroup(handle).Members {
			if !slices.Contains(members, member.Handle) {
				return backend.Invalid.Errorf("group snapshot %s has member %s, too", handle, member.Handle)
			}
			delete(d.of.snapshots, member.Handle)
		}
	}
	delete(d.groups, handle)
	return d.nextHalf()
}

// FindGroupSnapshot returns a group snapshot, or fails as FailNext said.
func (d *CSI) FindGroupSnapshot(ctx context.Context, handle string, _ []string) (*backend.GroupSnapshot, error) {
	if err := d.of.begin(ctx, "FindGroupSnapshot "+strings.TrimPrefix(handle, groupPrefix)); err != nil {
		return nil, err
	}
	defer d.of.mu.Unlock()
	if _, exists := d.groups[handle]; !exists {
		return nil, backend.NotFound.Errorf("there is no group snapshot %s", handle)
	}
	return d.foundGroup(handle), nil
}

// Groups returns the handles of the group snapshots that the driver holds, in order.
func (d *CSI) Groups() []string {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	var handles []string
	for handle := range d.groups {
		handles = append(handles, handle)
	}
	slices.Sort(handles)
	return handles
}

// FindSnapshot returns a snapshot, with the group that it is of.
func (d *CSI) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	found, err := d.of.FindSnapshot(ctx, handle)
	if err != nil {
		return nil, err
	}
	found.Volume = handlePrefix + found.Volume
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	for group, request := range d.groups {
		if slices.ContainsFunc(request.Volumes, func(volume string) bool { return memberOf(request, volume) == handle }) {
			found.Group = group
		}
	}
	return found, nil
}
