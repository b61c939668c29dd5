package nfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Stowage's directories on a share. No pod mounts them: no volume's directory begins with a dot.
const (
	// volumes holds the record of each volume, by id.
	volumes = share.Folder + "/volumes"
	// directories mirrors the volumes' directories: at a volume's path, a symlink names the volume.
	// It can't be made where another volume's is, nor above, nor below.
	directories = share.Folder + "/directories"
	// deleting holds directories that are being removed, by id.
	deleting = share.Folder + "/deleting"
	// archived and retained hold the records of deleted volumes, archived also their directories.
	archived = share.Folder + "/archived"
	retained = share.Folder + "/retained"
	// temporary holds files that are being written.
	temporary = share.Folder + "/tmp"

	recordSuffix = ".json"

	maxRecord = 64 << 10
	// maxObjectName is how long names and UIDs of objects can be.
	maxObjectName = 253
)

// validID is what backend.VolumeID makes. Ids become names of files.
var validID = regexp.MustCompile(`^pvc-[A-Za-z0-9-]{1,80}$`)

// record names a volume's owner: a file on the share, where no pod can write.
type record struct {
	backend.Owner
	// Directory of the volume, from the root of the share.
	Directory string `json:"directory"`
	// Source is the snapshot that the volume is restored from, or the volume that it is a copy of. Restored
	// is set once all is copied, just before the directory is there.
	Source string `json:"source,omitempty"`
	// SourceNamespace is that of the snapshot's claim; empty for that of this claim.
	SourceNamespace string `json:"sourceNamespace,omitempty"`
	Restored        bool   `json:"restored,omitempty"`
	// Deletion is set once the volume is being deleted: how its data is treated.
	Deletion stowagev1alpha1.NFSDeletion `json:"deletion,omitempty"`
	// Retained is set once a person wants the data kept though no volume object records
	// it.
	Retained bool `json:"retained,omitempty"`
}

// mark is the text of the volume's symlink in directories.
func (r record) mark() string { return r.Cluster + "/" + r.ID }

func recordPath(id string) string { return volumes + "/" + id + recordSuffix }

// inspectionPath is the file with the progress of the inspection before a removal. No directory
// that is being removed has the name: ids have no dot.
func inspectionPath(id string) string { return deleting + "/" + id + ".look" }

// ownRecord reads the record of a volume: nil where there is none. The record of another owner is
// an error of kind Conflict.
func (b *nfsBackend) ownRecord(ctx context.Context, root tree.Dir, id string) (*record, error) {
	if !validID.MatchString(id) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume: nothing is done for it", id)
	}
	found, err := findRecord(ctx, root, id)
	if found == nil || err != nil {
		return nil, err
	}
	return found, b.checkOwner(found)
}

// findRecord reads the record of a volume: nil where there is none.
func findRecord(ctx context.Context, root tree.Dir, id string) (found *record, err error) {
	err = tree.Within(ctx, root, volumes, func(dir tree.Dir) error {
		found, err = readRecord(ctx, dir, id)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// readRecord reads the record of a volume in the directory of records.
func readRecord(ctx context.Context, dir tree.Dir, id string) (*record, error) {
	data, err := dir.ReadFile(ctx, id+recordSuffix, maxRecord)
	if err != nil {
		return nil, fmt.Errorf("reading the record of volume %s: %w", id, err)
	}
	return recordFrom(data, id)
}

// recordFrom decodes a record. Others can write to the share, too, so the record may say anything.
func recordFrom(data []byte, id string) (*record, error) {
	found := &record{}
	why := ""
	if err := json.Unmarshal(data, found); err != nil {
		why = tree.Printable(err.Error())
	} else if field := found.tooLong(); field != "" {
		why = "its " + field + " is too long"
	}
	switch {
	case why != "":
		return nil, backend.Conflict.Errorf("the record of volume %s is damaged: repair or remove %s on the share: %s", id, recordPath(id), why)
	case found.ID != id:
		return nil, backend.Conflict.Errorf("the record %s is about another volume, %q: nothing is done about either", recordPath(id), tree.Truncate(found.ID))
	default:
		return found, nil
	}
}

// tooLong names a field that is longer than what Stowage writes: "" for none. Fields
// become messages, and parts of objects.
func (r record) tooLong() string {
	for _, field := range []struct {
		name, value string
		limit       int
	}{
		{"cluster", r.Cluster, maxObjectName},
		{"backend", r.Backend, maxObjectName},
		{"claim.namespace", r.Claim.Namespace, maxObjectName},
		{"claim.name", r.Claim.Name, maxObjectName},
		{"claim.uid", string(r.Claim.UID), maxObjectName},
		{"directory", r.Directory, naming.MaxLength},
		{"source", r.Source, maxObjectName},
		{"sourceNamespace", r.SourceNamespace, maxObjectName},
	} {
		if len(field.value) > field.limit {
			return field.name
		}
	}
	return ""
}

// writeRecord writes the record atomically. Before a share's first record it makes the directories.
func writeRecord(ctx context.Context, root tree.Dir, written record) error {
	data, err := json.MarshalIndent(written, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the record of volume %s: %w", written.ID, err)
	}
	path, via := recordPath(written.ID), fmt.Sprintf("%s/%s-%x", temporary, written.ID, rand.Uint64())
	err = tree.WriteFile(ctx, root, path, via, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err := ensureOurs(ctx, root); err != nil {
			return err
		}
		err = tree.WriteFile(ctx, root, path, via, data)
	}
	if err != nil {
		return fmt.Errorf("writing the record of volume %s: %w", written.ID, err)
	}
	return nil
}

// ensureOurs makes Stowage's directories.
func ensureOurs(ctx context.Context, root tree.Dir) error {
	for _, path := range []string{volumes, directories, deleting, archived, retained, temporary} {
		if err := tree.EnsureDir(ctx, root, path, share.OwnerOnly); err != nil {
			return fmt.Errorf("making %s on the share: %w", path, err)
		}
	}
	return nil
}

// checkOwner returns an error of kind Conflict where a record isn't that of a volume of this
// backend, or doesn't fit its id.
func (b *nfsBackend) checkOwner(found *record) error {
	return found.CheckOwner("volume "+found.ID, b.cluster, b.name)
}
