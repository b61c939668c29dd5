package content

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Linux's longest path, and longest name in a path.
const (
	maxPath = 4096
	maxName = 255
)

// checkPath returns the shortest form of a file's path in its volume. At the top of a volume,
// names that begin with ".." are package atomicdir's.
func checkPath(at string) (clean string, err error) {
	if problem := problemOf(at); problem != nil {
		return "", fmt.Errorf("path %q %w", at, problem)
	}
	return path.Clean(at), nil
}

func problemOf(at string) error {
	names := strings.Split(at, "/")
	switch {
	case path.IsAbs(at):
		return errors.New("is absolute: it must be relative to the volume")
	case slices.Contains(names, ".."):
		return errors.New("has .. in it: it must lie in the volume")
	case path.Clean(at) == ".":
		return errors.New("names no file: add the file's name")
	case strings.HasPrefix(path.Clean(at), ".."):
		return errors.New("begins with .., as only the volume's own names may: choose another")
	case strings.ContainsRune(at, 0):
		return errors.New("has a zero byte in it: choose another")
	case len(at) > maxPath || slices.ContainsFunc(names, func(name string) bool { return len(name) > maxName }):
		return errors.New("is too long: choose a shorter one")
	default:
		return nil
	}
}
