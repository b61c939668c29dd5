package inlinenfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// parentDir is the directory of the folders in a share. No claim's volume has that name: their
	// directories don't begin with a dot.
	parentDir = ".stowage-inline"
	// dirMode is the mode of the agent's own directories.
	dirMode = 0o750
	// defaultMode is the mode of folders of backends without one.
	defaultMode = "0770"

	fileMode = 0o600
	// unfinished ends the name of a record that isn't wholly written.
	unfinished = ".new"
)

var (
	// validID is a pod's UID and the name of one of its volumes.
	validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,199}$`)
	octal   = regexp.MustCompile(`^[0-7]{3,4}$`)
)

// record is the share of a volume's folder, its mount options, and the folder's owner, as the
// backend had them when the volume was made.
type record struct {
	Server string `json:"server"`
	Path   string `json:"path"`
	// MountOptions have commas between them.
	MountOptions string `json:"mountOptions"`
	// Folder is the volume's id, again: a copied record is invalid.
	Folder string `json:"folder"`
	UID    int64  `json:"uid"`
	GID    int64  `json:"gid"`
	// Mode is octal.
	Mode string `json:"mode"`
}

// idOf names a volume: the name is unique on a server, even with several clusters.
func idOf(spec volumes.Spec) (string, error) {
	id := string(spec.Pod.UID) + "-" + spec.Volume.Name
	if !validID.MatchString(id) {
		return "", fmt.Errorf("%q can't name a folder: give the volume a name of letters, digits and '-'", id)
	}
	return id, nil
}

// recordOf makes the record of a volume's folder from its backend.
func recordOf(id string, backend *stowagev1alpha1.StorageBackend) (*record, error) {
	if backend == nil || backend.Spec.NFS == nil {
		return nil, errors.New("the volume's StorageBackend doesn't allow it any more, and its folder wasn't made before: name another one")
	}
	spec := backend.Spec.NFS
	var options []string
	if spec.NFSVersion != "" {
		options = append(options, "nfsvers="+spec.NFSVersion)
	}
	for _, option := range spec.MountOptions {
		options = append(options, string(option))
	}
	made := &record{
		Server: spec.Server, Path: string(spec.Path), MountOptions: strings.Join(options, ","),
		Folder: id, UID: spec.Access.UID, GID: spec.Access.GID, Mode: spec.Access.Mode,
	}
	if made.Mode == "" {
		made.Mode = defaultMode
	}
	if err := made.check(id); err != nil {
		return nil, fmt.Errorf("the StorageBackend can't have the volume's folder: %w", err)
	}
	return made, nil
}

// check returns what is wrong with a record. Package nfs checks server, path and options.
func (r *record) check(id string) error {
	switch {
	case !validID.MatchString(id) || r.Folder != id:
		return fmt.Errorf("it is of folder %q", r.Folder)
	case r.Server == "" || !path.IsAbs(r.Path):
		return fmt.Errorf("it is of server %q and path %q", r.Server, r.Path)
	case !octal.MatchString(r.Mode) || min(r.UID, r.GID) < 0:
		return fmt.Errorf("it is of user %d, group %d and mode %q", r.UID, r.GID, r.Mode)
	default:
		return nil
	}
}

func (r *record) folder() remote.Folder {
	bits, err := strconv.ParseUint(r.Mode, 8, 32)
	if err != nil {
		// It was checked.
		panic(err)
	}
	return remote.Folder{Parent: parentDir, Name: r.Folder, UID: int(r.UID), GID: int(r.GID), Mode: safepath.FileMode(uint32(bits))}
}

// folderPath is where on the share the folder is.
func (r *record) folderPath() string { return path.Join(parentDir, r.Folder) }

// wholeShare is the share as a volume.
func (r *record) wholeShare() volumes.Spec { return r.volume(r.Path, mount.ReadWrite) }

// mountedBy is the folder as a volume, with what the pod may do with it.
func (r *record) mountedBy(spec volumes.Spec) volumes.Spec {
	return r.volume(path.Join(r.Path, r.folderPath()), spec.Access)
}

// volume is a directory of the server, as the nfs backend describes its volumes.
func (r *record) volume(directory string, access mount.Access) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Name = r.Folder
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: map[string]string{
		stowagev1alpha1.ServerAttribute:       r.Server,
		stowagev1alpha1.PathAttribute:         directory,
		stowagev1alpha1.MountOptionsAttribute: r.MountOptions,
	}}
	return volumes.Spec{PersistentVolume: volume, Access: access}
}

// records are the files of records, in a folder that no pod can write.
type records struct{ dir string }

func (r records) path(id string) string { return filepath.Join(r.dir, id+".json") }

// find reads a record; nil if there is none. A damaged one is an error.
func (r records) find(id string) (*record, error) {
	content, err := os.ReadFile(r.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the volume's record: %w", err)
	}
	found := &record{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(found)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows it")
	}
	if err == nil {
		err = found.check(id)
	}
	if err != nil {
		return nil, fmt.Errorf("the volume's record %s is damaged (%w), and nothing is done on its word: "+
			"remove the folder %s/%s from the share by hand, then the record", r.path(id), err, parentDir, id)
	}
	return found, nil
}

// write writes a record: all of it or nothing, also after a loss of power.
func (r records) write(id string, what *record) error {
	content, err := json.Marshal(what)
	if err == nil {
		err = writeSynced(r.path(id)+unfinished, append(content, '\n'))
	}
	if err == nil {
		err = os.Rename(r.path(id)+unfinished, r.path(id))
	}
	if err == nil {
		err = r.sync()
	}
	if err != nil {
		return fmt.Errorf("recording the volume's folder: %w", err)
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// remove removes a record, and what a crash left of one.
func (r records) remove(id string) error {
	for _, file := range []string{r.path(id) + unfinished, r.path(id)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the record of a folder that is gone: %w", err)
		}
	}
	return r.sync()
}

// sync makes names survive a loss of power.
func (r records) sync() error {
	dir, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
