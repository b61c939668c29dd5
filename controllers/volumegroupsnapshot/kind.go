package volumegroupsnapshot

import (
	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// kind has the words of VolumeGroupSnapshots.
var kind = &snapshotbinding.Kind{
	Name: "VolumeGroupSnapshot", Class: &groupsnapshotv1.VolumeGroupSnapshotClass{}, Classes: &groupsnapshotv1.VolumeGroupSnapshotClassList{},
	DefaultClass: snapshots.GroupDefaultClass, Handle: "groupSnapshotHandles", Volume: "volumeHandles",
	Secret: snapshotbinding.Secret{
		Parameters: "group-snapshotter", Variables: "volumegroupsnapshot", Name: snapshots.GroupDeletionSecretName, Namespace: snapshots.GroupDeletionSecretNamespace,
	},
	Reasons: snapshotbinding.Reasons{
		CreationFailed: event.GroupSnapshotContentCreationFailed, NoClass: event.GetGroupSnapshotClassFailed, NoDefaultClass: event.SetDefaultGroupSnapshotClassFailed,
		BindFailed: event.GroupSnapshotBindFailed, Missing: event.GroupSnapshotContentMissing, Mismatch: event.GroupSnapshotContentMismatch,
		ContentMisbound: event.GroupSnapshotContentMisbound, Misbound: event.GroupSnapshotMisbound,
	},
	Making:   snapshotbinding.News{Event: event.CreatingGroupSnapshot, Text: "the driver is to make the snapshots"},
	Created:  snapshotbinding.News{Event: event.GroupSnapshotCreated, Text: "the driver made the snapshots"},
	Ready:    snapshotbinding.News{Event: event.GroupSnapshotReady, Text: "claims can be restored from the snapshots"},
	NoClass:  "VolumeGroupSnapshotClass %s does not exist: create it",
	Restored: "the snapshots are kept while claim %s is restored from one",
}
