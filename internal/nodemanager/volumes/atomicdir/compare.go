package atomicdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// isCurrent reports whether a version has the wanted files. One that can't be read hasn't: the new
// write returns the error.
func (w *writer) isCurrent(version string) bool {
	return version != "" && w.isFolder(w.dir, version, w.wanted)
}

// isFolder reports whether a folder holds the wanted files, and nothing else.
func (w *writer) isFolder(parent *os.Root, name string, wanted *folder) bool {
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return false
	}
	defer dir.Close()
	opened, err := dir.Open(".")
	if err != nil {
		return false
	}
	defer opened.Close()
	if !holdsOnly(opened, wanted.names()) {
		return false
	}
	for name, file := range wanted.files {
		if !w.isFile(opened, name, file) {
			return false
		}
	}
	for name, below := range wanted.folders {
		if !w.isFolder(dir, name, below) {
			return false
		}
	}
	return true
}

// holdsOnly reports whether a folder has no other names than these; it may lack some.
func holdsOnly(dir *os.File, wanted map[string]struct{}) bool {
	names, err := dir.Readdirnames(len(wanted) + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	for _, name := range names {
		if _, known := wanted[name]; !known {
			return false
		}
	}
	return true
}

// isFile reports whether a file has the wanted content. Only a regular file is opened: a pipe would
// block, and opening a device may have effects.
func (w *writer) isFile(dir *os.File, name string, wanted content.File) bool {
	path, err := safepath.OpenFileAt(dir, name)
	if err != nil {
		return false
	}
	defer path.Close()
	info, err := path.Stat()
	if err != nil || info.Size() != int64(len(wanted.Data)) || !w.isAllowed(info, wanted) {
		return false
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", path.Fd()))
	if err != nil {
		return false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, info.Size()+1))
	return err == nil && bytes.Equal(data, wanted.Data)
}

// isAllowed reports whether a file has the wanted mode, owner and group.
func (w *writer) isAllowed(info os.FileInfo, wanted content.File) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && info.Mode().Perm() == w.modeOf(wanted) &&
		int(stat.Uid) == ownerOf(wanted) && int(stat.Gid) == w.groupID()
}
