package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// IsThere reports whether a volume's directory exists.
func IsThere(dir string) (bool, error) {
	_, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RemoveRecorded removes what a volume's directory records: each empty directory in it with the
// prefix in its name records the rest of that name. The record goes after what it stands for, so
// that a crash between them loses nothing.
func RemoveRecorded(dir, prefix string, remove func(recorded string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		recorded, is := strings.CutPrefix(entry.Name(), prefix)
		if !is {
			continue
		}
		if err := remove(recorded); err != nil {
			return err
		}
		if err := RemoveEmptyDir(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
