package main

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
func (s *story) mounted(pod, volume string, point *mount.Point) condition {
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

// write writes a file, as a process in a pod would.
func (s *story) write(dir, name, text string) {
	s.do(func() error {
		fmt.Printf("  $ echo '%s' > %s\n", text, s.short(filepath.Join(dir, name)))
		return os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600)
	})
}

// short is a path within the demo's folder.
func (s *story) short(path string) string {
	return strings.TrimPrefix(path, s.cluster.Folder.Root()+"/")
}

// holds holds if a file has a text.
func (s *story) holds(dir, name, text string) condition {
	return func() error {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if string(content) != text+"\n" {
			return fmt.Errorf("%s holds %q", name, content)
		}
		return nil
	}
}

// exists says whether a path is there.
func (s *story) exists(path string, want bool) condition {
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
