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

// isShown says whether a version is what is wanted. Whatever can't be looked at isn't:
// writing it anew tells what is wrong.
func (w *writer) isShown(version string) bool {
	return version != "" && w.isFolder(w.dir, version, w.wanted)
}

// isFolder says whether a folder holds what is wanted, and nothing else.
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

// holdsOnly says whether a folder has no name but these; it may lack some.
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

// isFile says whether a file is what is wanted. What isn't a file is never opened: a
// pipe would block, and a device might act.
func (w *writer) isFile(dir *os.File, name string, wanted content.File) bool {
	place, err := safepath.OpenFileAt(dir, name)
	if err != nil {
		return false
	}
	defer place.Close()
	info, err := place.Stat()
	if err != nil || info.Size() != int64(len(wanted.Data)) || !w.isAllowed(info, wanted) {
		return false
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", place.Fd()))
	if err != nil {
		return false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, info.Size()+1))
	return err == nil && bytes.Equal(data, wanted.Data)
}

// isAllowed says whether a file may be read by those who should read it.
func (w *writer) isAllowed(info os.FileInfo, wanted content.File) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && info.Mode().Perm() == w.modeOf(wanted) &&
		int(stat.Uid) == ownerOf(wanted) && int(stat.Gid) == w.groupID()
}
