package volumesnapshot

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// kind has the words of VolumeSnapshots.
var kind = &snapshotbinding.Kind{
	Name: "VolumeSnapshot", Class: &snapshotv1.VolumeSnapshotClass{}, Classes: &snapshotv1.VolumeSnapshotClassList{},
	DefaultClass: snapshots.DefaultClass, Handle: "snapshotHandle", Volume: "volumeHandle",
	Secret: snapshotbinding.Secret{
		Parameters: "snapshotter", Variables: "volumesnapshot", Name: snapshots.DeletionSecretName, Namespace: snapshots.DeletionSecretNamespace,
	},
	Reasons: snapshotbinding.Reasons{
		CreationFailed: event.SnapshotContentCreationFailed, NoClass: event.GetSnapshotClassFailed, NoDefaultClass: event.SetDefaultSnapshotClassFailed,
		BindFailed: event.SnapshotBindFailed, Missing: event.SnapshotContentMissing, Mismatch: event.SnapshotContentMismatch,
		ContentMisbound: event.SnapshotContentMisbound, Misbound: event.SnapshotMisbound,
	},
	Making:   snapshotbinding.News{Event: event.CreatingSnapshot, Text: "the driver is to make the snapshot"},
	Created:  snapshotbinding.News{Event: event.SnapshotCreated, Text: "the driver made the snapshot"},
	Ready:    snapshotbinding.News{Event: event.SnapshotReady, Text: "claims can be restored from the snapshot"},
	NoClass:  "VolumeSnapshotClass %q does not exist: create it",
	Restored: "the snapshot is kept while claim %s is restored from it",
}
