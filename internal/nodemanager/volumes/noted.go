package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// IsThere says whether a volume's directory exists.
func IsThere(dir string) (bool, error) {
	_, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RemoveNoted removes what a volume's directory notes, by empty directories in it whose
// names are a prefix and what each stands for: first that, then its note, so that a crash
// between them loses nothing.
func RemoveNoted(dir, prefix string, remove func(noted string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		noted, is := strings.CutPrefix(entry.Name(), prefix)
		if !is {
			continue
		}
		if err := remove(noted); err != nil {
			return err
		}
		if err := RemoveEmptyDir(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
