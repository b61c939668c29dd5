package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// At opens the parent directory of a path below root, and calls do with it and the path's last part.
// The path has no empty, "." or ".." parts. An absent parent is ENOENT.
func At(ctx context.Context, root Dir, path string, do func(parent Dir, name string) error) error {
	first, rest, more := strings.Cut(path, "/")
	if !more {
		return do(root, path)
	}
	next, err := root.Open(ctx, first)
	if err != nil {
		return err
	}
	defer next.Close()
	return At(ctx, next, rest, do)
}

// Within opens the directory that a path below root leads to.
func Within(ctx context.Context, root Dir, path string, do func(dir Dir) error) error {
	return At(ctx, root, path+"/.", func(dir Dir, _ string) error { return do(dir) })
}

// Lookup describes what a path below root leads to.
func Lookup(ctx context.Context, root Dir, path string) (info Info, err error) {
	err = At(ctx, root, path, func(parent Dir, name string) error {
		info, err = parent.Lookup(ctx, name)
		return err
	})
	return info, err
}

// Exists reports whether a path below root exists.
func Exists(ctx context.Context, root Dir, path string) (bool, error) {
	_, err := Lookup(ctx, root, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// EnsureDir makes the directory of a path below root, and its parents, with a mode for those that it
// makes. A file in their place is ENOTDIR.
func EnsureDir(ctx context.Context, root Dir, path string, mode uint32) error {
	first, rest, more := strings.Cut(path, "/")
	if err := root.MakeDir(ctx, first, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		// Some servers refuse before they check whether the name exists.
		if info, lookupErr := root.Lookup(ctx, first); lookupErr != nil || info.Type != Directory {
			return err
		}
	}
	next, err := root.Open(ctx, first)
	if err != nil {
		return err
	}
	defer next.Close()
	if !more {
		return nil
	}
	return EnsureDir(ctx, next, rest, mode)
}

// Move renames what one path leads to, to another. Nothing there is ENOENT.
func Move(ctx context.Context, root Dir, from, to string) error {
	return At(ctx, root, from, func(source Dir, name string) error {
		return At(ctx, root, to, func(target Dir, newName string) error {
			return source.Rename(ctx, name, target, newName)
		})
	})
}

// WriteFile writes a file below root atomically, and replaces a file with that path. It makes the
// file under the path aside first.
func WriteFile(ctx context.Context, root Dir, path, aside string, data []byte) error {
	err := At(ctx, root, aside, func(parent Dir, name string) error { return parent.WriteFile(ctx, name, data) })
	if err != nil {
		return err
	}
	return Move(ctx, root, aside, path)
}

// ReadFile reads a small file below root.
func ReadFile(ctx context.Context, root Dir, path string, limit int) (data []byte, err error) {
	err = At(ctx, root, path, func(parent Dir, name string) error {
		data, err = parent.ReadFile(ctx, name, limit)
		return err
	})
	return data, err
}

// RemoveFile removes the file that a path below root leads to, if it is there.
func RemoveFile(ctx context.Context, root Dir, path string) error {
	err := At(ctx, root, path, func(parent Dir, name string) error { return parent.RemoveFile(ctx, name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ResolveLost returns the outcome of a call with a lost answer, after a check whether the call had
// its effect. Without an effect so far, it may still have one.
func ResolveLost(err error, check func() (done bool, err error)) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	done, checkErr := check()
	if checkErr != nil {
		return fmt.Errorf("%w; checking: %w", err, checkErr)
	}
	if done {
		return nil
	}
	return err
}

// IsPermission reports whether an error says that permission is missing.
func IsPermission(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}

// isGone reports whether an error says that there is no such directory any more.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
