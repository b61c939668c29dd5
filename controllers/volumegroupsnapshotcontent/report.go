package volumegroupsnapshotcontent

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/snapshotcontent"
)

// reporter writes what the storage says into the status of contents, and sends their events.
type reporter struct{ snapshotcontent.Reporter }

// made records a group snapshot. What is recorded stays, but for whether it is ready.
func (r *reporter) made(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, made *backend.GroupSnapshot) (ctrl.Result, error) {
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &groupsnapshotv1.VolumeGroupSnapshotContentStatus{}
	}
	status := content.Status
	if status.VolumeGroupSnapshotHandle == nil {
		status.VolumeGroupSnapshotHandle = &made.Handle
	}
	if status.CreationTime == nil {
		status.CreationTime = ptr.To(metav1.NewTime(made.Created))
		if made.Created.IsZero() {
			status.CreationTime = ptr.To(metav1.NewTime(r.Clock.Now()))
		}
	}
	refreshInfo(status, made.Members)
	status.ReadyToUse, status.Error = &made.Ready, nil
	return r.Record(ctx, servable(content), before, made.Ready)
}

// refreshInfo writes what a status says of members. Their handles stay as they are, once they are there: all else is what
// the storage says now, because snapshot-controller writes it into their contents until the group is ready.
func refreshInfo(status *groupsnapshotv1.VolumeGroupSnapshotContentStatus, members []backend.Snapshot) {
	now := infoOf(members)
	if len(status.VolumeSnapshotInfoList) == 0 {
		status.VolumeSnapshotInfoList = now
	}
	for i := range status.VolumeSnapshotInfoList {
		had := &status.VolumeSnapshotInfoList[i]
		for _, info := range now {
			if info.SnapshotHandle == had.SnapshotHandle && info.VolumeHandle == had.VolumeHandle {
				*had = info
			}
		}
	}
}

// infoOf is what a status says of members, from which snapshot-controller makes their contents.
func infoOf(members []backend.Snapshot) []groupsnapshotv1.VolumeSnapshotInfo {
	var all []groupsnapshotv1.VolumeSnapshotInfo
	for _, member := range members {
		info := groupsnapshotv1.VolumeSnapshotInfo{VolumeHandle: member.Volume, SnapshotHandle: member.Handle, ReadyToUse: new(member.Ready)}
		if size := member.RestoreSize.Value(); size > 0 {
			info.RestoreSize = &size
		}
		if !member.Created.IsZero() {
			info.CreationTime = new(member.Created.UnixNano())
		}
		all = append(all, info)
	}
	return all
}
