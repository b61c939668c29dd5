package upgrade_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Machine is what the node itself shows.
type Machine struct{}

// Prepare gives the node what volumes need, and the folder of local volumes.
func (Machine) Prepare(base string, _ *guest.Nothing) error {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	return uml.LoadModules("loop", "nfs", "nfsv3", uml.NFSv4)
}

// Mounts has the kernel's number of each mount, by its path.
type Mounts struct{ IDs map[string]int }

// Mounts is what is mounted at a path and below it.
func (Machine) Mounts(path string, mounts *Mounts) error {
	table, err := mount.Kernel{}.Table()
	mounts.IDs = map[string]int{}
	for _, point := range table.Below(path) {
		mounts.IDs[point.Path] = point.ID
	}
	return err
}

// Loops is the files that loop devices show.
func (Machine) Loops(_ guest.Nothing, files *[]string) error {
	attached, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	*files = attached
	return err
}

// Files is everything at a path and below it but directories.
func (Machine) Files(root string, files *[]string) error {
	*files = []string{}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			*files = append(*files, path)
		}
		return err
	})
}

// Owner is the group and the mode of a file.
func (Machine) Owner(path string, owner *string) error {
	var stat unix.Stat_t
	err := unix.Stat(path, &stat)
	*owner = fmt.Sprintf("group %d, mode %o", stat.Gid, stat.Mode)
	return err
}

// Private takes a file from its group, as pods do.
func (Machine) Private(path string, _ *guest.Nothing) error {
	if err := os.Chown(path, 0, 0); err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

// Begins is the first bytes of a file or a device, as many as a text has.
func (Machine) Begins(request guest.File, begins *string) error {
	file, err := os.Open(request.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	text := make([]byte, len(request.Content))
	_, err = io.ReadFull(file, text)
	*begins = string(text)
	return err
}
