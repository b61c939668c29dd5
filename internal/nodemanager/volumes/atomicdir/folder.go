package atomicdir

import (
	"context"
	"os"
	"strings"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

const (
	// pointer leads to the current version, and nextPointer replaces it.
	pointer     = "..data"
	nextPointer = "..data_tmp"
	// ownPrefix begins the names that are this package's own.
	ownPrefix = ".."

	// folderMode lets all users list a folder once all of its files are written; until then, root
	// alone does.
	folderMode     = 0o755
	unfinishedMode = 0o700
	// groupReads is what files let their group do.
	groupReads = 0o440
	// unfinishedFile is the mode of a file before its owner and mode are set.
	unfinishedFile = 0o600
)

// folder is files and folders by their names.
type folder struct {
	files   map[string]content.File
	folders map[string]*folder
}

// folderOf returns the files as a tree.
func folderOf(files content.Files) *folder {
	top := newFolder()
	for path, file := range files {
		names := strings.Split(path, "/")
		at, last := top, len(names)-1
		for _, name := range names[:last] {
			at = at.ensure(name)
		}
		at.files[names[last]] = file
	}
	return top
}

func newFolder() *folder {
	return &folder{files: map[string]content.File{}, folders: map[string]*folder{}}
}

func (f *folder) ensure(name string) *folder {
	if _, exists := f.folders[name]; !exists {
		f.folders[name] = newFolder()
	}
	return f.folders[name]
}

func (f *folder) names() map[string]struct{} {
	names := make(map[string]struct{}, len(f.files)+len(f.folders))
	for name := range f.files {
		names[name] = struct{}{}
	}
	for name := range f.folders {
		names[name] = struct{}{}
	}
	return names
}

// writer is one Write.
type writer struct {
	ctx    context.Context
	dir    *os.Root
	wanted *folder
	group  *int64
}

// writeFolder makes a folder that doesn't exist yet.
func (w *writer) writeFolder(parent *os.Root, name string, wanted *folder) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := parent.Mkdir(name, unfinishedMode); err != nil {
		return err
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for name, file := range wanted.files {
		if err := w.writeFile(dir, name, file); err != nil {
			return err
		}
	}
	for name, below := range wanted.folders {
		if err := w.writeFolder(dir, name, below); err != nil {
			return err
		}
	}
	return w.finishFolder(dir)
}

func (w *writer) finishFolder(dir *os.Root) error {
	opened, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer opened.Close()
	if w.group == nil {
		return opened.Chmod(folderMode)
	}
	if err := opened.Chown(-1, w.groupID()); err != nil {
		return err
	}
	return opened.Chmod(folderMode | os.ModeSetgid)
}

// writeFile makes a file that doesn't exist yet.
func (w *writer) writeFile(dir *os.Root, name string, file content.File) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	written, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, unfinishedFile)
	if err != nil {
		return err
	}
	defer written.Close()
	if _, err := written.Write(file.Data); err != nil {
		return err
	}
	if err := written.Chown(ownerOf(file), w.groupID()); err != nil {
		return err
	}
	if err := written.Chmod(w.modeOf(file)); err != nil {
		return err
	}
	return written.Close()
}

// modeOf is the mode of a file in this volume.
func (w *writer) modeOf(file content.File) os.FileMode {
	if w.group == nil {
		return file.Mode.Perm()
	}
	return file.Mode.Perm() | groupReads
}

func (w *writer) groupID() int {
	if w.group == nil {
		return os.Getegid()
	}
	return int(*w.group)
}

func ownerOf(file content.File) int {
	if file.Owner == nil {
		return os.Geteuid()
	}
	return int(*file.Owner)
}
