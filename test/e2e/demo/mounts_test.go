package demo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// mounted holds if a volume is mounted for a pod; point is where.
func (s *scenario) mounted(pod, volume string, point *mount.Point) condition {
	return func() error {
		found := &corev1.Pod{}
		if err := s.get(pod, found); err != nil {
			return err
		}
		table, err := mount.Kernel{}.Table()
		if err != nil {
			return err
		}
		below := table.Below(s.cluster.PodDir(found))
		for _, candidate := range below {
			if slices.Contains(strings.Split(candidate.Path, "/"), volume) {
				*point = candidate
				return nil
			}
		}
		return fmt.Errorf("%d volumes are mounted for pod %s; its conditions: %s", len(below), pod, podConditions(found))
	}
}

func podConditions(pod *corev1.Pod) string {
	var all []string
	for _, c := range pod.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(all, "; ")
}

// nothingMountedBelow holds if no volume is mounted in a folder.
func nothingMountedBelow(dir string) condition {
	return func() error {
		table, err := mount.Kernel{}.Table()
		if err != nil {
			return err
		}
		if below := table.Below(dir); len(below) > 0 {
			return fmt.Errorf("%s is mounted", below[0].Path)
		}
		return nil
	}
}

// write writes the greeting into a folder, as a process in a pod would.
func (s *scenario) write(dir string) {
	s.do(func() error {
		file := filepath.Join(dir, greetingFile)
		fmt.Printf("  $ echo '%s' > %s\n", greeting, s.short(file))
		return os.WriteFile(file, []byte(greeting+"\n"), 0o600)
	})
}

// short is a path within the demo's folder.
func (s *scenario) short(path string) string {
	return strings.TrimPrefix(path, s.cluster.Folder.Root()+"/")
}

// greets is met if a folder has the greeting.
func (s *scenario) greets(dir string) condition {
	return func() error {
		content, err := os.ReadFile(filepath.Join(dir, greetingFile))
		if err != nil {
			return err
		}
		if string(content) != greeting+"\n" {
			return fmt.Errorf("%s has %q", greetingFile, content)
		}
		return nil
	}
}

// exists reports whether a path is there.
func (s *scenario) exists(path string, want bool) condition {
	return func() error {
		_, err := os.Lstat(path)
		switch {
		case err == nil && !want:
			return fmt.Errorf("%s is there", path)
		case errors.Is(err, os.ErrNotExist) && !want:
			return nil
		default:
			return err
		}
	}
}
