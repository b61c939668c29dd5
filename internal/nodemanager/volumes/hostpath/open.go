package hostpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// dirMode and fileMode are those of what is made. A kubelet leaves a path of no type to the
// container runtime, which makes it a directory of this mode.
const (
	dirMode  = 0o755
	fileMode = 0o644
)

// open opens the path of a volume. It makes a missing one if the type of the hostPath allows that.
// The path is walked once: a later change of it doesn't affect what was opened, checked, and is
// mounted.
func open(host *corev1.HostPathVolumeSource) (*os.File, error) {
	kind := corev1.HostPathUnset
	if host.Type != nil {
		kind = *host.Type
	}
	expected, err := expect(kind)
	if err != nil {
		return nil, err
	}
	path := filepath.Clean("/" + host.Path)
	file, err := safepath.OpenHost(path)
	if errors.Is(err, os.ErrNotExist) {
		file, err = makeAt(path, kind)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, expected.missing(path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the volume's hostPath: %w", err)
	}
	if err := expected.check(file, path); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// makeAt makes a directory or file, and opens it.
func makeAt(path string, kind corev1.HostPathType) (*os.File, error) {
	switch kind {
	case corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate:
		return makeDir(path)
	case corev1.HostPathFileOrCreate:
		return makeFile(path)
	default:
		return nil, os.ErrNotExist
	}
}

// makeDir makes a directory and its parents, each in the opened parent: a change of the path during the call leads
// nowhere else.
func makeDir(path string) (*os.File, error) {
	parent, err := safepath.OpenHost(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		parent, err = makeDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	name := filepath.Base(path)
	if err := safepath.MakeDir(parent, name, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return safepath.OpenAt(parent, name)
}

// makeFile makes an empty file in an existing directory.
func makeFile(path string) (*os.File, error) {
	parent, err := safepath.OpenHost(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return safepath.EnsureFile(parent, filepath.Base(path), fileMode)
}
