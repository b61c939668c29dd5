package plugins

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// maxSockets bounds the sockets, and the folders with them, that are followed: others may
	// write to the folder.
	maxSockets = 128
	// maxEntries bounds how much of the folder is read.
	maxEntries = 4096
)

// identity tells a socket from a later one at the same path.
type identity struct {
	device, inode uint64
	seconds       int64
	nanoseconds   int64
}

// list returns the sockets below a folder, and the folders with the sockets. Names that begin with
// a dot are left out, as a kubelet leaves them out.
func list(folder string) (sockets map[string]identity, folders []string, err error) {
	sockets = map[string]identity{}
	entries := 0
	err = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil && path == folder {
			return err
		}
		entries++
		switch {
		case entries > maxEntries:
			return filepath.SkipAll
		case err != nil:
			return nil //nolint:nilerr // one that went since, or can't be read: the rest is read
		case entry.IsDir() && path != folder && entry.Name()[0] == '.':
			return filepath.SkipDir
		case entry.IsDir() && len(folders) < maxSockets:
			folders = append(folders, path)
		case entry.Type() == os.ModeSocket && entry.Name()[0] != '.':
			if known, isThere := identityOf(path); isThere {
				sockets[path] = known
			}
		}
		return nil
	})
	return sockets, folders, err
}

func identityOf(path string) (identity, bool) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return identity{}, false
	}
	return identity{device: stat.Dev, inode: stat.Ino, seconds: stat.Mtim.Sec, nanoseconds: stat.Mtim.Nsec}, true
}
