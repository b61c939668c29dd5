package identity

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const (
	// maxNames is how many names in a backend's folder are read, and namesAtOnce how many at
	// once. Only root can write there.
	maxNames, namesAtOnce = 65536, 1024
	// maxNameLength is the longest name of a NodeVolume.
	maxNameLength = 253
)

// namer lists the names of the NodeVolumes in a folder.
type namer func() (map[string]bool, error)

// Unrecorded finds the volumes in a backend's folder, on its accepted disk, that have no
// NodeVolume. It reads the folder before it calls recorded: a directory is made after its
// NodeVolume, and removed before it. In the other order, a new volume would look unrecorded.
func (d Disks) Unrecorded(disk Disk, recorded namer) (*stowagev1alpha1.UnrecordedVolumes, error) {
	folder, err := d.openAccepted(disk.Path, disk.Known)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := volumeNames(folder)
	if err != nil {
		return nil, err
	}
	known, err := recorded()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return known[name] })
	slices.Sort(names)
	found := &stowagev1alpha1.UnrecordedVolumes{}
	for i, name := range names {
		if len(found.Volumes) == stowagev1alpha1.MaxUnrecorded {
			found.Count += int32(len(names) - i)
			break
		}
		volume, err := describe(folder, name)
		if err != nil {
			return nil, err
		}
		if volume != nil {
			found.Count++
			found.Volumes = append(found.Volumes, *volume)
		}
	}
	return found, nil
}

// volumeNames returns the names in a folder that volumes can have.
func volumeNames(folder *os.File) ([]string, error) {
	readable, err := os.Open(device.PathOf(folder))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", folder.Name(), err)
	}
	defer readable.Close()
	var names []string
	for seen := 0; seen < maxNames; {
		some, err := readable.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", folder.Name(), err)
		}
		seen += len(some)
		names = append(names, slices.DeleteFunc(some, func(name string) bool { return !isVolumeName(name) })...)
	}
	return names, nil
}

// isVolumeName reports whether a NodeVolume could have this name: pvc-<uid>,
// pvc-<uid>-<n>, or snapshot-<uid>.
func isVolumeName(name string) bool {
	uid, found := strings.CutPrefix(name, "pvc-")
	if !found {
		uid, found = strings.CutPrefix(name, "snapshot-")
	}
	isOther := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}
	return found && uid != "" && len(name) <= maxNameLength && !strings.ContainsFunc(uid, isOther) && !strings.HasSuffix(uid, "-")
}

// describe returns a volume in an open folder; nil where there is no directory of this name.
func describe(folder *os.File, name string) (*stowagev1alpha1.UnrecordedVolume, error) {
	dir, err := safepath.OpenAt(folder, name)
	if isNoDirectory(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	volume := &stowagev1alpha1.UnrecordedVolume{ID: name}
	if record := layout.ReadRecord(dir, name); record != nil {
		volume.ClaimNamespace, volume.ClaimName, volume.ClaimUID = record.Claim.Namespace, record.Claim.Name, record.Claim.UID
		volume.Layout = record.Layout
	}
	return volume, nil
}

// isNoDirectory reports whether an error means that a name has no directory.
func isNoDirectory(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, safepath.ErrOutside)
}
