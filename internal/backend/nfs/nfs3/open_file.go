package nfs3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// WRITE answers at once, and COMMIT once the data is on disk; or WRITE does then.
	unstable, fileSync = 0, 2
	// leastTransfer and mostTransfer bound what one call reads or writes, whatever a server offers.
	leastTransfer, mostTransfer = 4 << 10, 256 << 10
)

// file is a regular file of the server.
type file struct {
	*dir
	handle []byte
	path   string
	// most is how many bytes one call carries.
	most int
	// verifier is of the server's run that took what was written; pending is set until COMMIT.
	verifier uint64
	pending  bool
}

var _ tree.RegularFile = (*file)(nil)

func (d *dir) file(name string, handle []byte, most int) *file {
	return &file{dir: d, handle: handle, path: d.path + "/" + name, most: most}
}

// OpenFile is LOOKUP.
func (d *dir) OpenFile(ctx context.Context, name string) (tree.RegularFile, error) {
	handle, info, err := d.lookup(ctx, name)
	return d.open(ctx, name, handle, info, err)
}

// MakeFile is LOOKUP and, where there is none, CREATE.
func (d *dir) MakeFile(ctx context.Context, name string) (tree.RegularFile, error) {
	handle, info, err := d.lookup(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		info = tree.Info{Type: tree.File, FileSystem: d.fileSystem}
		handle, err = d.create(ctx, name)
	}
	return d.open(ctx, name, handle, info, err)
}

func (d *dir) open(ctx context.Context, name string, handle []byte, info tree.Info, err error) (tree.RegularFile, error) {
	switch {
	case err != nil:
	case info.Type != tree.File:
		err = syscall.EINVAL
	case info.FileSystem != d.fileSystem:
		err = tree.ErrOtherFileSystem
	default:
		err = d.ensureTransfer(ctx, d.handle)
	}
	return d.file(name, handle, d.transfer), wrap("opening", d.path+"/"+name, err)
}

// ensureTransfer asks the server how much one call may carry, once.
func (s *session) ensureTransfer(ctx context.Context, handle []byte) error {
	if s.transfer > 0 {
		return nil
	}
	results, err := s.query(ctx, procFSInfo, (&encoder{}).opaque(handle))
	if err != nil {
		return err
	}
	results.optionalInfo()
	read := results.uint32()
	results.bytes(4 + 4) // what it prefers
	s.transfer = int(min(max(min(read, results.uint32()), leastTransfer), mostTransfer))
	return results.err
}

// SetInfo is LOOKUP and SETATTR. A call that sets owner and mode loses setuid and setgid on some servers: so there are two.
func (d *dir) SetInfo(ctx context.Context, name string, info tree.Info) error {
	handle, _, err := d.lookup(ctx, name)
	if err == nil {
		_, err = d.change(ctx, procSetAttr, (&encoder{}).opaque(handle).owner(info.Access).uint32(noGuard))
	}
	if err == nil && info.Type != tree.Symlink {
		_, err = d.change(ctx, procSetAttr, (&encoder{}).opaque(handle).modeAndTime(info).uint32(noGuard))
	}
	return wrap("setting owner and mode of", d.path+"/"+name, err)
}

// ReadAt is READ.
func (f *file) ReadAt(ctx context.Context, into []byte, offset int64) (int, error) {
	chunk, end, err := f.read(ctx, min(len(into), f.most), int(offset))
	if err == nil && len(chunk) == 0 && !end {
		err = errGarbled
	}
	return copy(into, chunk), wrap("reading", f.path, err)
}

func (f *file) read(ctx context.Context, most, offset int) (chunk []byte, end bool, err error) {
	results, err := f.query(ctx, procRead, (&encoder{}).opaque(f.handle).uint64(uint64(offset)).uint32(uint32(most)))
	if err != nil {
		return nil, false, err
	}
	results.optionalInfo()
	results.uint32() // the length, again
	end = results.bool()
	return results.opaque(most), end, results.err
}

// WriteAt is WRITE, as often as it takes.
func (f *file) WriteAt(ctx context.Context, data []byte, offset int64) error {
	return wrap("writing", f.path, f.write(ctx, data, int(offset), unstable))
}

func (f *file) write(ctx context.Context, data []byte, offset int, how uint32) error {
	for calls := 0; len(data) > 0; calls++ {
		written, err := f.writeSome(ctx, data[:min(len(data), f.most)], offset, how)
		if err == nil && calls == maxChunks {
			err = errGarbled
		}
		if err != nil {
			return err
		}
		data, offset = data[written:], offset+written
	}
	return nil
}

func (f *file) writeSome(ctx context.Context, data []byte, offset int, how uint32) (int, error) {
	arguments := (&encoder{}).opaque(f.handle).uint64(uint64(offset)).uint32(uint32(len(data)), how).opaque(data)
	results, err := f.change(ctx, procWrite, arguments)
	if err != nil {
		return 0, err
	}
	results.skipChange()
	written, committed, verifier := int(results.uint32()), results.uint32(), results.uint64()
	if results.err != nil || written < 1 || written > len(data) || how == fileSync && committed != fileSync {
		return 0, fmt.Errorf("%w: %w", tree.ErrLost, errGarbled)
	}
	return written, f.note(verifier, committed != fileSync)
}

// note compares the runs of the server that took what was written. Another run has lost what wasn't committed.
func (f *file) note(verifier uint64, pending bool) error {
	if f.pending && verifier != f.verifier {
		return fmt.Errorf("%w: the server was started again", tree.ErrLost)
	}
	f.verifier, f.pending = verifier, f.pending || pending
	return nil
}

// Truncate is SETATTR.
func (f *file) Truncate(ctx context.Context, size int64) error {
	_, err := f.change(ctx, procSetAttr, (&encoder{}).opaque(f.handle).size(size).uint32(noGuard))
	return wrap("cutting", f.path, err)
}

// Sync is COMMIT.
func (f *file) Sync(ctx context.Context) error {
	if !f.pending {
		return nil
	}
	results, err := f.change(ctx, procCommit, (&encoder{}).opaque(f.handle).uint64(0).uint32(0))
	if err == nil {
		results.skipChange()
		if err = f.note(results.uint64(), false); err == nil {
			f.pending, err = false, results.err
		}
	}
	return wrap("syncing", f.path, err)
}

// Close does nothing: the server keeps no open files.
func (*file) Close() error { return nil }
