package snapshots

import (
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// kind is all in which snapshots, images and instant snapshots differ.
type kind[T any] struct {
	// name is the kind in Google's words, such as instantSnapshot. Its collection has an s more.
	name string
	// record is the name of the resource in the record of an insert that is under way.
	record string
	// isZonal resources are in a zone; the others are global.
	isZonal bool
	// served are the fields of a new resource that are kept.
	served []string
	// created and working are the statuses before and while the bytes are copied.
	created, working string

	table  func(*engine.Engine) *state.Table[T]
	fields func(*T) fields
	// complete sets what a request leaves out, and what Google sets itself.
	complete func(*wire.Request, *T)
	// findSource finds what a new resource is made from, and takes its size from there.
	findSource func(s *engine.Engine, row *T, isForced bool) (disks.Source, error)
	// finish notes how many bytes are stored.
	finish func(row *T, stored int64)
}

// fields are those that all kinds have.
type fields struct {
	kind, name, path, created, status, fingerprint *string

	id     *uint64
	sizeGb *int64
	labels *map[string]string
	// sources are paths, where clients see URLs. So is the zone, of a kind that has one.
	sources []*string
	zone    *string
}

var snapshots = &kind[compute.Snapshot]{
	name: "snapshot", record: "Snapshot", created: state.StatusCreating, working: state.StatusUploading,
	served: []string{
		"description", "labels", "name", "snapshotType", "sourceDisk", "sourceInstantSnapshot", "storageLocations",
	},
	table: func(s *engine.Engine) *state.Table[compute.Snapshot] { return &s.Snapshots },
	fields: func(row *compute.Snapshot) fields {
		return fields{
			kind: &row.Kind, name: &row.Name, path: &row.SelfLink, created: &row.CreationTimestamp, status: &row.Status,
			fingerprint: &row.LabelFingerprint, id: &row.Id, sizeGb: &row.DiskSizeGb, labels: &row.Labels,
			sources: []*string{&row.SourceDisk, &row.SourceInstantSnapshot},
		}
	},
	complete:   completeSnapshot,
	findSource: findSnapshotSource,
	finish: func(row *compute.Snapshot, stored int64) {
		row.StorageBytes, row.StorageBytesStatus = stored, "UP_TO_DATE"
	},
}

var images = &kind[compute.Image]{
	name: "image", record: "Image", created: "PENDING", working: "PENDING",
	served: []string{
		"architecture", "description", "diskSizeGb", "family", "imageEncryptionKey", "labels", "name", "sourceDisk",
		"sourceImage", "sourceSnapshot", "sourceType", "storageLocations",
	},
	table: func(s *engine.Engine) *state.Table[compute.Image] { return &s.Images },
	fields: func(row *compute.Image) fields {
		return fields{
			kind: &row.Kind, name: &row.Name, path: &row.SelfLink, created: &row.CreationTimestamp, status: &row.Status,
			fingerprint: &row.LabelFingerprint, id: &row.Id, sizeGb: &row.DiskSizeGb, labels: &row.Labels,
			sources: []*string{&row.SourceDisk, &row.SourceSnapshot, &row.SourceImage},
		}
	},
	complete:   func(_ *wire.Request, row *compute.Image) { row.SourceType = "RAW" },
	findSource: findImageSource,
	finish:     func(row *compute.Image, stored int64) { row.ArchiveSizeBytes = stored },
}

var instantSnapshots = &kind[compute.InstantSnapshot]{
	name: "instantSnapshot", record: "Instant", isZonal: true, created: state.StatusCreating, working: state.StatusCreating,
	served: []string{"description", "labels", "name", "sourceDisk"},
	table:  func(s *engine.Engine) *state.Table[compute.InstantSnapshot] { return &s.Instants },
	fields: func(row *compute.InstantSnapshot) fields {
		return fields{
			kind: &row.Kind, name: &row.Name, path: &row.SelfLink, created: &row.CreationTimestamp, status: &row.Status,
			fingerprint: &row.LabelFingerprint, id: &row.Id, sizeGb: &row.DiskSizeGb, labels: &row.Labels,
			sources: []*string{&row.SourceDisk}, zone: &row.Zone,
		}
	},
	complete:   func(r *wire.Request, row *compute.InstantSnapshot) { row.Zone = r.Scope() },
	findSource: findInstantSource,
	finish:     func(*compute.InstantSnapshot, int64) {},
}
