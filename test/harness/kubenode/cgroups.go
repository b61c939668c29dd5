package kubenode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroups = "/sys/fs/cgroup"

// prepareCgroups makes the cgroup in which the kubelet makes those of pods, of the
// version that the host has: in each of version 1's trees.
func prepareCgroups(name string) error {
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		if err := unix.Mount("cgroup2", cgroups, "cgroup2", 0, ""); err != nil {
			return fmt.Errorf("mounting cgroups: %w", err)
		}
	}
	controllers, err := os.ReadFile(filepath.Join(cgroups, "cgroup.controllers"))
	if errors.Is(err, os.ErrNotExist) {
		return makeInEach(entries, name)
	}
	if err != nil {
		return err
	}
	return makeUnified(strings.Fields(string(controllers)), name)
}

func makeInEach(trees []os.DirEntry, name string) error {
	for _, tree := range trees {
		if !tree.IsDir() {
			continue // a link to one
		}
		if err := os.MkdirAll(filepath.Join(cgroups, tree.Name(), name), 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
	}
	return nil
}

func makeUnified(controllers []string, name string) error {
	if err := os.MkdirAll(filepath.Join(cgroups, name), 0o755); err != nil {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	for _, parent := range []string{cgroups, filepath.Join(cgroups, name)} {
		control := []byte("+" + strings.Join(controllers, " +"))
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), control, 0o644); err != nil {
			return fmt.Errorf("handing on the controllers of %s: %w", parent, err)
		}
	}
	return nil
}
