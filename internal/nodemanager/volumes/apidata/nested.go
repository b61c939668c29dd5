package apidata

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ensureMountPoints makes the folders of a volume on which containers mount other volumes. The
// volume is read-only in containers, so the runtime can't make them later. They hide files of the
// same name at the volume's top, as in the kubelet.
func ensureMountPoints(dir *os.Root, pod *corev1.Pod, volume string) error {
	for _, at := range mountPointsIn(pod, volume) {
		if err := makeAll(dir, at); err != nil {
			return fmt.Errorf("making the folder that another volume is mounted on: %w", err)
		}
	}
	return nil
}

// makeAll makes a folder and its parents, with their mode whatever the umask is.
func makeAll(dir *os.Root, at string) error {
	if above := path.Dir(at); above != "." {
		if err := makeAll(dir, above); err != nil {
			return err
		}
	}
	err := dir.Mkdir(at, mode)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return dir.Chmod(at, mode)
}

// mountPointsIn returns the paths in a volume where containers mount other volumes. A path inside
// another one lies in that other volume.
func mountPointsIn(pod *corev1.Pod, volume string) []string {
	if pod == nil {
		return nil
	}
	var found []string
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, outer := range container.VolumeMounts {
			if outer.Name == volume {
				found = append(found, nestedIn(outer, container.VolumeMounts)...)
			}
		}
	}
	return found
}

// nestedIn returns the topmost mounts of a container inside the outer one.
func nestedIn(outer corev1.VolumeMount, mounts []corev1.VolumeMount) []string {
	var nested []string
	for _, inner := range mounts {
		at, err := filepath.Rel(path.Clean(outer.MountPath), path.Clean(inner.MountPath))
		// Names that begin with ".." are above the volume, or its writer's own.
		if err == nil && at != "." && !strings.HasPrefix(at, "..") {
			nested = append(nested, at)
		}
	}
	return slices.DeleteFunc(slices.Clone(nested), func(at string) bool {
		return slices.ContainsFunc(nested, func(above string) bool { return strings.HasPrefix(at, above+"/") })
	})
}
