package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// holds reports whether a file on a server says what was written.
func holds(path, want string) error {
	content, err := os.ReadFile(path)
	if err == nil && string(content) != want {
		err = fmt.Errorf("%s has %q, not %q", path, content, want)
	}
	return err
}

func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

func lacks(path string) error {
	switch err := exists(path); {
	case err == nil:
		return fmt.Errorf("%s is still there", path)
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return err
	}
}

func (s *spec) soonLacks(path string) error {
	return scenario.Eventually(s.ctx, func() error { return lacks(path) })
}

// hasOnly reports whether a directory on a server has these names and no others; none
// if it isn't there.
func hasOnly(dir string, want ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, want) {
		return fmt.Errorf("%s has %q, not %q", dir, names, want)
	}
	return nil
}
