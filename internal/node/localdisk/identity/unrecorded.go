package identity

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const (
	// maxNames is how many names in a backend's folder are looked at, and namesAtOnce how
	// many are read at once. Only root can write there.
	maxNames, namesAtOnce = 65536, 1024
	// maxNameLength is how long the name of a NodeVolume can be.
	maxNameLength = 253
)

// namer lists the names of the NodeVolumes in a folder.
type namer func() (map[string]bool, error)

// Unrecorded finds the volumes in a backend's folder, on its accepted disk, that no
// NodeVolume has. The folder is read before the NodeVolumes are listed: a directory
// is made for a NodeVolume that is in the list, and is gone before it leaves that. So
// only what is still there afterwards has none.
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

// volumeNames are the names in a folder that volumes can have.
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

// isVolumeName reports whether a NodeVolume could have this name: pvc-<uid>, or
// pvc-<uid>-<n>.
func isVolumeName(name string) bool {
	uid, found := strings.CutPrefix(name, "pvc-")
	isOther := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}
	return found && uid != "" && len(name) <= maxNameLength && !strings.ContainsFunc(uid, isOther) && !strings.HasSuffix(uid, "-")
}

// describe tells of a volume in an open folder; nil where there is none of this name.
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
