package mounted

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// MakeDir is mkdirat.
func (d dir) MakeDir(ctx context.Context, name string, mode uint32) error {
	err := d.named(ctx, name, func() error { return unix.Mkdirat(d.fd(), name, mode) })
	return d.wrap("making directory", name, err)
}

// MakeLink is symlinkat.
func (d dir) MakeLink(ctx context.Context, name, text string) error {
	err := d.named(ctx, name, func() error { return unix.Symlinkat(text, d.fd(), name) })
	return d.wrap("making link", name, err)
}

// WriteFile makes a file, and waits until it is on the server's disk.
func (d dir) WriteFile(ctx context.Context, name string, data []byte) error {
	made, err := d.open(ctx, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, ownerOnly)
	if err != nil {
		return d.wrap("writing", name, err)
	}
	defer made.Close()
	if _, err := made.Write(data); err != nil {
		return d.wrap("writing", name, err)
	}
	if err := made.Sync(); err != nil {
		return d.wrap("writing", name, err)
	}
	// A server that is out of room may say so only now.
	return d.wrap("writing", name, made.Close())
}

// SetAccess is fchown and fchmod, which comes last: a change of owner takes bits.
func (d dir) SetAccess(ctx context.Context, access tree.Access) error {
	err := ctx.Err()
	if err == nil {
		err = unix.Fchown(d.fd(), int(access.UID), int(access.GID))
	}
	if err == nil {
		err = unix.Fchmod(d.fd(), access.Mode)
	}
	return d.wrap("setting owner and mode of", "", err)
}

// Rename is renameat.
func (d dir) Rename(ctx context.Context, name string, to tree.Dir, newName string) error {
	target, same := to.(dir)
	if !same {
		return d.wrap("renaming", name, unix.EXDEV)
	}
	err := tree.CheckName(newName)
	if err == nil {
		err = d.named(ctx, name, func() error { return unix.Renameat(d.fd(), name, target.fd(), newName) })
	}
	return d.wrap("renaming", name, err)
}

// RemoveFile is unlinkat.
func (d dir) RemoveFile(ctx context.Context, name string) error {
	err := d.named(ctx, name, func() error { return unix.Unlinkat(d.fd(), name, 0) })
	return d.wrap("removing", name, err)
}

// RemoveDir is unlinkat of a directory.
func (d dir) RemoveDir(ctx context.Context, name string) error {
	err := d.named(ctx, name, func() error { return unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR) })
	return d.wrap("removing", name, err)
}
