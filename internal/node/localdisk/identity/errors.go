package identity

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// What can be wrong with a disk.
var (
	ErrForeignDisk  = errors.New("the folder isn't this backend's")
	ErrPathTaken    = errors.New("the folder is another backend's, too")
	ErrPathMissing  = errors.New("the folder isn't there")
	ErrSymlink      = errors.New("the path leads through a symlink")
	ErrNotDirectory = errors.New("the path leads through a file")
	ErrReadOnly     = errors.New("the file system is read-only")
	ErrNotWritable  = errors.New("the folder can't be written")
)

// notWritable adds the kind, and what to do, to the error of a write that was refused.
func notWritable(err error) error {
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: mount it writable: %w", ErrReadOnly, err)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: check its owner and its attributes (lsattr): %w", ErrNotWritable, err)
	default:
		return err
	}
}
