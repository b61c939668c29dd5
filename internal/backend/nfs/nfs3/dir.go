package nfs3

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	maxLink = 4096
	// canChange are the bits of ACCESS for making and removing names.
	canModify, canExtend, canDelete = 0x4, 0x8, 0x10
	canChange                       = canModify | canExtend | canDelete
	// noGuard has SETATTR change a file whatever its last change was.
	noGuard = 0
)

// dir is a directory of the server.
type dir struct {
	*session
	handle []byte
	// path is for messages only.
	path       string
	fileSystem uint64
	root       bool
}

var _ tree.Dir = (*dir)(nil)

// Close gives the connection back, if this is the root.
func (d *dir) Close() error {
	if d.root {
		d.end()
	}
	return nil
}

// Stat is GETATTR.
func (d *dir) Stat(ctx context.Context) (tree.Info, error) {
	info, err := d.getAttr(ctx, d.handle)
	return info, wrap("reading the attributes of", d.path, err)
}

func (d *dir) getAttr(ctx context.Context, handle []byte) (tree.Info, error) {
	results, err := d.query(ctx, procGetAttr, (&encoder{}).opaque(handle))
	if err != nil {
		return tree.Info{}, err
	}
	info := results.info()
	return info, results.err
}

// Lookup is LOOKUP.
func (d *dir) Lookup(ctx context.Context, name string) (tree.Info, error) {
	_, info, err := d.lookup(ctx, name)
	return info, wrap("looking up", d.path+"/"+name, err)
}

func (d *dir) lookup(ctx context.Context, name string) ([]byte, tree.Info, error) {
	if err := tree.CheckName(name); err != nil {
		return nil, tree.Info{}, err
	}
	results, err := d.query(ctx, procLookup, d.named(name))
	if err != nil {
		return nil, tree.Info{}, err
	}
	handle := slices.Clone(results.opaque(maxHandle))
	info, present := results.optionalInfo()
	if results.err == nil && len(handle) == 0 {
		results.fail()
	}
	if results.err == nil && !present {
		info, results.err = d.getAttr(ctx, handle)
	}
	return handle, info, results.err
}

// Open is LOOKUP, with checks of the type and the file system.
func (d *dir) Open(ctx context.Context, name string) (tree.Dir, error) {
	path := d.path + "/" + name
	handle, info, err := d.lookup(ctx, name)
	switch {
	case err != nil:
		return nil, wrap("opening", path, err)
	case info.Type != tree.Directory:
		return nil, wrap("opening", path, syscall.ENOTDIR)
	case info.FileSystem != d.fileSystem:
		return nil, wrap("opening", path, tree.ErrOtherFileSystem)
	}
	return &dir{session: d.session, handle: handle, path: path, fileSystem: d.fileSystem}, nil
}

// ReadLink is READLINK.
func (d *dir) ReadLink(ctx context.Context, name string) (string, error) {
	text, err := d.readLink(ctx, name)
	return text, wrap("reading link", d.path+"/"+name, err)
}

func (d *dir) readLink(ctx context.Context, name string) (string, error) {
	handle, info, err := d.lookup(ctx, name)
	if err != nil {
		return "", err
	}
	if info.Type != tree.Symlink {
		return "", syscall.EINVAL
	}
	results, err := d.query(ctx, procReadLink, (&encoder{}).opaque(handle))
	if err != nil {
		return "", err
	}
	results.optionalInfo()
	text := string(results.opaque(maxLink))
	return text, results.err
}

// Writable is ACCESS.
func (d *dir) Writable(ctx context.Context) (bool, error) {
	results, err := d.query(ctx, procAccess, (&encoder{}).opaque(d.handle).uint32(canChange))
	if err != nil {
		return false, wrap("asking for access to", d.path, err)
	}
	results.optionalInfo()
	granted := results.uint32()
	return granted&canChange == canChange, wrap("asking for access to", d.path, results.err)
}

// Space is FSSTAT.
func (d *dir) Space(ctx context.Context) (tree.Space, error) {
	results, err := d.query(ctx, procFSStat, (&encoder{}).opaque(d.handle))
	if err != nil {
		return tree.Space{}, wrap("asking for the space of", d.path, err)
	}
	results.optionalInfo()
	space := tree.Space{Total: results.uint64()}
	results.uint64() // free, also what is kept for root
	space.Free = results.uint64()
	return space, wrap("asking for the space of", d.path, results.err)
}

// MakeDir is MKDIR.
func (d *dir) MakeDir(ctx context.Context, name string, mode uint32) error {
	err := d.changeName(ctx, procMkdir, name, (&encoder{}).mode(mode))
	err = tree.ResolveLost(err, func() (bool, error) { return d.is(ctx, name, tree.Directory) })
	return wrap("making directory", d.path+"/"+name, err)
}

// MakeLink is SYMLINK.
func (d *dir) MakeLink(ctx context.Context, name, text string) error {
	err := d.changeName(ctx, procSymlink, name, (&encoder{}).nothing().opaque([]byte(text)))
	err = tree.ResolveLost(err, func() (bool, error) {
		found, err := d.readLink(ctx, name)
		return found == text, absent(err)
	})
	return wrap("making link", d.path+"/"+name, err)
}

// SetAccess is SETATTR. If its answer was lost, GETATTR shows whether it is done.
func (d *dir) SetAccess(ctx context.Context, access tree.Access) error {
	_, err := d.change(ctx, procSetAttr, (&encoder{}).opaque(d.handle).access(access).uint32(noGuard))
	err = tree.ResolveLost(err, func() (bool, error) {
		info, err := d.getAttr(ctx, d.handle)
		return info.Access == access, err
	})
	return wrap("setting owner and mode of", d.path, err)
}

// Rename is RENAME.
func (d *dir) Rename(ctx context.Context, name string, to tree.Dir, newName string) error {
	target, same := to.(*dir)
	if !same || target.session != d.session {
		return wrap("renaming", d.path+"/"+name, syscall.EXDEV)
	}
	err := errors.Join(tree.CheckName(name), tree.CheckName(newName))
	if err == nil {
		arguments := d.named(name).opaque(target.handle).opaque([]byte(newName))
		_, err = d.change(ctx, procRename, arguments)
	}
	err = tree.ResolveLost(err, func() (bool, error) {
		_, _, here := d.lookup(ctx, name)
		_, _, there := target.lookup(ctx, newName)
		return errors.Is(here, fs.ErrNotExist) && there == nil, errors.Join(absent(here), absent(there))
	})
	return wrap("renaming", d.path+"/"+name, err)
}

// RemoveFile is REMOVE.
func (d *dir) RemoveFile(ctx context.Context, name string) error {
	return d.removeName(ctx, procRemove, name)
}

// RemoveDir is RMDIR.
func (d *dir) RemoveDir(ctx context.Context, name string) error {
	return d.removeName(ctx, procRmdir, name)
}

func (d *dir) removeName(ctx context.Context, proc uint32, name string) error {
	err := d.changeName(ctx, proc, name, &encoder{})
	err = tree.ResolveLost(err, func() (bool, error) {
		_, _, err := d.lookup(ctx, name)
		return errors.Is(err, fs.ErrNotExist), absent(err)
	})
	return wrap("removing", d.path+"/"+name, err)
}

// changeName calls a procedure with arguments that begin with a name in the directory.
func (d *dir) changeName(ctx context.Context, proc uint32, name string, more *encoder) error {
	if err := tree.CheckName(name); err != nil {
		return err
	}
	arguments := d.named(name)
	arguments.buf = append(arguments.buf, more.buf...)
	_, err := d.change(ctx, proc, arguments)
	return err
}

// named writes a diropargs3.
func (d *dir) named(name string) *encoder {
	return (&encoder{}).opaque(d.handle).opaque([]byte(name))
}

// is reports whether a name exists and has a type.
func (d *dir) is(ctx context.Context, name string, kind tree.Type) (bool, error) {
	_, info, err := d.lookup(ctx, name)
	return err == nil && info.Type == kind, absent(err)
}

// absent drops an error that says that something doesn't exist.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
