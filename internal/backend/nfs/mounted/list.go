package mounted

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// What a struct linux_dirent64 begins with: number, offset, length, type; then the name.
const (
	offsetAt, lengthAt, typeAt, nameAt = 8, 16, 18, 19
)

// List is getdents64. Its offsets are the server's cookies.
func (d dir) List(ctx context.Context, from tree.Cursor) iter.Seq2[tree.Entry, error] {
	return func(yield func(tree.Entry, error) bool) {
		if _, err := unix.Seek(d.fd(), int64(from.Cookie), io.SeekStart); err != nil {
			yield(tree.Entry{}, d.wrap("listing", "", errors.Join(tree.ErrCursor, err)))
			return
		}
		for buffer := make([]byte, page); ; {
			read, err := d.readPage(ctx, buffer)
			if err != nil {
				yield(tree.Entry{}, d.wrap("listing", "", err))
				return
			}
			if read == 0 {
				return
			}
			for entry := range entriesIn(buffer[:read]) {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// readPage returns how many bytes of the listing were read.
func (d dir) readPage(ctx context.Context, buffer []byte) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		read, err := unix.Getdents(d.fd(), buffer)
		if !errors.Is(err, unix.EINTR) {
			return read, err
		}
	}
}

// entriesIn goes through what getdents64 wrote.
func entriesIn(buffer []byte) iter.Seq[tree.Entry] {
	return func(yield func(tree.Entry) bool) {
		for len(buffer) > nameAt {
			length := int(binary.NativeEndian.Uint16(buffer[lengthAt:]))
			if length <= nameAt || length > len(buffer) {
				return
			}
			name, _, _ := bytes.Cut(buffer[nameAt:length], []byte{0})
			entry := tree.Entry{
				Name: string(name), Type: typeOf(buffer[typeAt]),
				Next: tree.Cursor{Cookie: binary.NativeEndian.Uint64(buffer[offsetAt:])},
			}
			buffer = buffer[length:]
			if entry.Name != "." && entry.Name != ".." && !yield(entry) {
				return
			}
		}
	}
}

func typeOf(kind byte) tree.Type {
	switch kind {
	case unix.DT_DIR:
		return tree.Directory
	case unix.DT_REG:
		return tree.File
	case unix.DT_LNK:
		return tree.Symlink
	case unix.DT_UNKNOWN:
		return tree.Unknown
	default:
		return tree.Other
	}
}
