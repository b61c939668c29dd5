// Package subpath mounts a part of a volume for a container: what subPath or subPathExpr of a
// volumeMount names. The node manager calls it once the volume is published, and unmounts the
// part before the volume.
//
// A container with the volume may turn any part of it into a symlink at any moment. So every step
// starts from the open volume, and the kernel refuses what leads out of it. The mount is of what was
// opened: no path is looked up twice. Nothing in a volume is ever removed.
//
// It keeps no state: the mount table and the mount points, which lie in a directory of the
// agent's own, are the actual state.
package subpath

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

// Wanted is a part of a volume that a container asks for.
type Wanted struct {
	// Container that has the volumeMount, and Index of Mount among its volumeMounts.
	Container corev1.Container
	Index     int
	Mount     corev1.VolumeMount
}

// Of returns the parts of a volume that the pod's containers ask for.
func Of(pod *corev1.Pod, volume string) []Wanted {
	var wanted []Wanted
	for _, container := range container.All(pod) {
		for i, mount := range container.VolumeMounts {
			if mount.Name == volume && IsPart(mount) {
				wanted = append(wanted, Wanted{Container: container, Index: i, Mount: mount})
			}
		}
	}
	return wanted
}

// IsPart reports whether a volumeMount is of a part of the volume.
func IsPart(mount corev1.VolumeMount) bool {
	return mount.SubPath != "" || mount.SubPathExpr != ""
}

// Written is the part as in the pod's spec, for messages. The value of an expression may hold a
// secret, and is in no message.
func (w Wanted) Written() string {
	if w.Mount.SubPathExpr != "" {
		return "subPathExpr " + w.Mount.SubPathExpr
	}
	return "subPath " + w.Mount.SubPath
}

// Part is a part of a volume, and where it is to be mounted.
type Part struct {
	// Path to it in the volume.
	Path string
	// Written is its name in messages.
	Written string
	// Target is where it is mounted, in a directory of the agent's own.
	Target string
	// Access is what containers may do with it.
	Access mount.Access
	// Fixed: missing directories aren't made.
	Fixed bool
}

func (p Part) check() error {
	if !filepath.IsLocal(p.Path) || slices.Contains(strings.Split(p.Path, "/"), "..") {
		return fmt.Errorf(`%s must be a path relative to the volume, without "..": create the pod again with one`, p.Written)
	}
	return nil
}
