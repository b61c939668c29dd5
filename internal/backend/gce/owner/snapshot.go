package owner

import (
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// handleForm is the path of a snapshot: the handle that Google's own driver gives it, too.
var handleForm = regexp.MustCompile(`^projects/([a-z0-9.:-]+)/global/(snapshots|images)/([a-z]([a-z0-9-]{0,61}[a-z0-9])?)$`)

// Snapshot names a snapshot's owner. It is the snapshot's description.
type Snapshot struct {
	CreatedBy string `json:"createdBy"`
	ID        string `json:"id"`
	Cluster   string `json:"cluster"`
	Backend   string `json:"backend"`
	// Snapshot is the UID of the VolumeSnapshot, and Volume the handle of its volume.
	Snapshot types.UID `json:"snapshot"`
	Volume   string    `json:"volume"`
}

// DescribeSnapshot returns the description of the snapshot of a request.
func (o Owner) DescribeSnapshot(request backend.SnapshotRequest) (string, error) {
	description, err := json.Marshal(Snapshot{creator, request.ID, o.Cluster, o.Backend, request.Owner, request.Volume})
	if err != nil {
		return "", fmt.Errorf("describing snapshot %s: %w", request.ID, err)
	}
	return string(description), nil
}

// CheckSnapshot reads the record of a snapshot. It returns an error of kind Conflict where the snapshot isn't the owner's,
// or its record doesn't fit its name.
func (o Owner) CheckSnapshot(found *cloud.Snapshot, path string) (Snapshot, error) {
	var read Snapshot
	err := json.Unmarshal([]byte(found.Description), &read)
	switch {
	case err != nil || read.CreatedBy != creator:
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

// SnapshotName reads the path of a snapshot or an image, which must be in a project.
func (o Owner) SnapshotName(handle, project string) (name string, isImage bool, err error) {
	parts := handleForm.FindStringSubmatch(handle)
	switch {
	case parts == nil:
		return "", false, backend.Invalid.Errorf("%.200q is no path of a snapshot, such as projects/PROJECT/global/snapshots/NAME, or of an image", handle)
	case parts[1] != project:
		return "", false, backend.Invalid.Errorf("snapshot %s isn't of project %s, which backend %s is for", handle, project, o.Backend)
	}
	return parts[3], parts[2] == "images", nil
}
