// Package snapshots keeps snapshots of volumes on their share: copies, in a directory of Stowage's own that no
// pod mounts. Beside each lies a record with its owner. The record comes first and goes last, so that nothing on
// the share has no owner. The data has its name once it is complete. Only what a record of this cluster names is
// removed.
//
// A copy is made file by file. It has no one moment at which the volume looked like it, unless nothing wrote to
// the volume while it was made.
package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/listing"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// Folder has, by id, the record of each snapshot, its data, and what is being copied to it.
	Folder = share.Folder + "/snapshots"
	// restoring has, by id, what is being copied to each volume.
	restoring = share.Folder + "/restoring"

	recordSuffix, asideSuffix = listing.Suffix, ".copy"

	maxRecord = 64 << 10
	// maxField is how long names and paths in a record can be.
	maxField = 1024
)

// record names a snapshot's owner: a file on the share, where no pod can write.
type record struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	Backend string `json:"backend"`
	// Snapshot is the UID of the VolumeSnapshot.
	Snapshot types.UID `json:"snapshot"`
	// Volume is the volume that was copied, and Claim that volume's.
	Volume string `json:"volume"`
	Claim  Claim  `json:"claim"`
	// Made is when the copy was complete. It is written just before the data gets its name: without
	// the data it means nothing.
	Made *time.Time `json:"made,omitempty"`
	// Retained is set once no object in the cluster refers to the snapshot, and a person keeps it.
	Retained bool `json:"retained,omitempty"`
	// Deleting is set once the snapshot is being deleted.
	Deleting bool `json:"deleting,omitempty"`
}

// Claim is the claim of a volume.
type Claim struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func recordPath(id string) string { return Folder + "/" + id + recordSuffix }
func dataPath(id string) string   { return Folder + "/" + id }

// find reads the record of a snapshot: nil where there is none. One that isn't this backend's is an error of kind
// Conflict.
func (k Keeper) find(ctx context.Context, root tree.Dir, handle string) (*record, error) {
	// Ids become names of files.
	if !backend.IsSnapshotID(handle) {
		return nil, backend.Invalid.Errorf("%.200q is no snapshot of an NFS volume: those are named snapshot-<uid>", handle)
	}
	data, err := tree.ReadFile(ctx, root, recordPath(handle), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of snapshot %s: %w", handle, err)
	}
	return k.decode(data, handle)
}

// decode decodes the record of a snapshot. Others can write to the share, too, so it may say anything.
func (k Keeper) decode(data []byte, handle string) (*record, error) {
	found := &record{}
	if err := json.Unmarshal(data, found); err != nil {
		return nil, backend.Conflict.Errorf("the record of snapshot %s is damaged: repair or remove %s on the share: %s", handle, recordPath(handle), tree.Printable(err.Error()))
	}
	switch {
	case found.ID != handle || handle != backend.SnapshotID(found.Snapshot) || found.isTooLong():
		return nil, backend.Conflict.Errorf("the record %s doesn't fit its name: nothing is done about the snapshot", recordPath(handle))
	case found.Cluster != k.Cluster:
		return nil, backend.Conflict.Errorf("snapshot %s belongs to another cluster, with the id %s: it is left alone", handle, tree.Printable(found.Cluster))
	case found.Backend != k.Backend:
		return nil, backend.Conflict.Errorf("snapshot %s belongs to backend %s: it is left alone", handle, tree.Printable(found.Backend))
	}
	return found, nil
}

// isTooLong reports whether a field is longer than what Stowage writes. Fields become parts of messages.
func (r record) isTooLong() bool {
	for _, field := range []string{r.Cluster, r.Backend, r.Volume, r.Claim.Namespace, r.Claim.Name, string(r.Claim.UID)} {
		if len(field) > maxField {
			return true
		}
	}
	return false
}

// write writes the record atomically.
func write(ctx context.Context, root tree.Dir, written record) error {
	data, err := json.MarshalIndent(written, "", "  ")
	if err == nil {
		err = tree.WriteFile(ctx, root, recordPath(written.ID), fmt.Sprintf("%s/.%s-%x", Folder, written.ID, rand.Uint64()), data)
	}
	if err != nil {
		return fmt.Errorf("writing the record of snapshot %s: %w", written.ID, err)
	}
	return nil
}
