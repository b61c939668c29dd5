// Package subpath shows containers a part of a volume: what subPath or subPathExpr of
// a volumeMount names. The node manager calls it once the volume is published, and again
// to take the part away before the volume is.
//
// Whoever writes to a volume may turn any part of it into a symlink at any moment. So
// every step starts from the open volume, the kernel refuses what leads out of it, and
// what was opened is what is mounted: no path is looked up twice. Nothing in a volume is
// ever removed.
//
// Nothing is remembered: the mount table and the places of the mounts, which are
// directories of the agent's own, tell what is there.
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
	// Container that asks, and Index of Mount among its volumeMounts.
	Container corev1.Container
	Index     int
	Mount     corev1.VolumeMount
}

// Of is what a pod's containers ask for of one of its volumes.
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

// IsPart says whether a container sees only a part of a volume.
func IsPart(mount corev1.VolumeMount) bool {
	return mount.SubPath != "" || mount.SubPathExpr != ""
}

// Written is the part as the pod's author wrote it, for messages. What an expression
// comes to may hold a secret, and is shown to nobody.
func (w Wanted) Written() string {
	if w.Mount.SubPathExpr != "" {
		return "subPathExpr " + w.Mount.SubPathExpr
	}
	return "subPath " + w.Mount.SubPath
}

// Part is a part of a volume, and where it is to be seen.
type Part struct {
	// Path to it in the volume.
	Path string
	// Written is what messages call it.
	Written string
	// Target is where it is mounted, in a directory of the agent's own.
	Target string
	// Access is what may be done with it.
	Access mount.Access
	// Fixed: what isn't in the volume isn't made.
	Fixed bool
}

// check refuses what can't be the path of a part.
func (p Part) check() error {
	if !filepath.IsLocal(p.Path) || slices.Contains(strings.Split(p.Path, "/"), "..") {
		return fmt.Errorf(`%s must be a path relative to the volume, without "..": create the pod anew with one`, p.Written)
	}
	return nil
}
