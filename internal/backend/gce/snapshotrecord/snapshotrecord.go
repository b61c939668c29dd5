// Package snapshotrecord names the owners of snapshots in the cloud. A record is a snapshot's description, which
// can't be changed.
package snapshotrecord

import (
	"encoding/json"
	"fmt"
	"regexp"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Creator is in the description of each disk and snapshot of Stowage.
const Creator = "stowage.dev"

// handleForm is the path of a snapshot: the handle that Google's own driver gives it, too.
var handleForm = regexp.MustCompile(`^projects/([a-z0-9.:-]+)/global/snapshots/([a-z]([a-z0-9-]{0,61}[a-z0-9])?)$`)

// Owner is a StorageBackend of a cluster.
type Owner struct{ Cluster, Backend string }

// Record names a snapshot's owner.
type Record struct {
	CreatedBy string `json:"createdBy"`
	ID        string `json:"id"`
	Cluster   string `json:"cluster"`
	Backend   string `json:"backend"`
	// Snapshot is the UID of the VolumeSnapshot, and Volume the handle of its volume.
	Snapshot types.UID `json:"snapshot"`
	Volume   string    `json:"volume"`
}

// Describe returns the description of the snapshot of a request.
func (o Owner) Describe(request backend.SnapshotRequest) (string, error) {
	description, err := json.Marshal(Record{Creator, request.ID, o.Cluster, o.Backend, request.Owner, request.Volume})
	if err != nil {
		return "", fmt.Errorf("describing snapshot %s: %w", request.ID, err)
	}
	return string(description), nil
}

// Read reads the record of a snapshot. It returns an error of kind Conflict where the snapshot isn't the owner's,
// or its record doesn't fit its name.
func (o Owner) Read(found *compute.Snapshot, path string) (Record, error) {
	var read Record
	err := json.Unmarshal([]byte(found.Description), &read)
	switch {
	case err != nil || read.CreatedBy != Creator:
		return read, backend.Conflict.Errorf("snapshot %s isn't Stowage's: its description names no owner; it is left alone", path)
	case read.ID != found.Name || read.ID != backend.SnapshotID(read.Snapshot):
		return read, backend.Conflict.Errorf("snapshot %s is described as snapshot %.200q, which doesn't fit: it is left alone", path, read.ID)
	case read.Cluster != o.Cluster:
		return read, backend.Conflict.Errorf("snapshot %s belongs to another cluster, with the id %.200q: it is left alone", path, read.Cluster)
	case read.Backend != o.Backend:
		return read, backend.Conflict.Errorf("snapshot %s belongs to backend %.200q: it is left alone", path, read.Backend)
	}
	return read, nil
}

// NameOf reads the path of a snapshot, which must be in a project.
func (o Owner) NameOf(handle, project string) (string, error) {
	parts := handleForm.FindStringSubmatch(handle)
	switch {
	case parts == nil:
		return "", backend.Invalid.Errorf("%.200q is no path of a snapshot, such as projects/PROJECT/global/snapshots/NAME", handle)
	case parts[1] != project:
		return "", backend.Invalid.Errorf("snapshot %s isn't of project %s, which backend %s is for", handle, project, o.Backend)
	}
	return parts[2], nil
}
