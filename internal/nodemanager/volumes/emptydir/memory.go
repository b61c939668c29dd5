package emptydir

import (
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// publishInMemory mounts a tmpfs, unless one is mounted.
func publishInMemory(mounter mount.Mounter, spec volumes.Spec, dir, label string) error {
	mounted, err := ensureMountPoint(mounter, dir)
	if mounted || err != nil {
		return err
	}
	mode, group := modeOf(spec)
	return mounter.Tmpfs(dir, mount.TmpfsOptions{
		Bytes: memoryOf(spec), Mode: safepath.FileMode(mode), Group: group, NoSwap: true, Label: label,
	})
}

// ensureMountPoint makes the mount point, and reports whether something is mounted there.
func ensureMountPoint(mounter mount.Mounter, dir string) (mounted bool, err error) {
	parent, err := safepath.OpenDir(filepath.Dir(dir))
	if err != nil {
		return false, err
	}
	defer parent.Close()
	if err := safepath.EnsureDir(parent, filepath.Base(dir), mountPointMode); err != nil {
		return false, err
	}
	return mounter.IsMountPoint(dir)
}

// memoryOf is how many bytes of memory a volume may have: its sizeLimit, or the pod's memory limit
// if that is less. 0: there is neither.
func memoryOf(spec volumes.Spec) int64 {
	asked, most := limitOf(spec), podMemory(spec.Pod)
	if asked == 0 || most == 0 {
		return max(asked, most)
	}
	return min(asked, most)
}

// podMemory is a pod's memory limit in bytes; 0 if one of its containers has no limit, and the pod
// has none.
func podMemory(pod *corev1.Pod) int64 {
	if pod == nil {
		return 0
	}
	unlimited := func(container corev1.Container) bool { return container.Resources.Limits.Memory().IsZero() }
	whole := pod.Spec.Resources != nil && !pod.Spec.Resources.Limits.Memory().IsZero()
	if !whole && slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), unlimited) {
		return 0
	}
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	return limits.Memory().Value()
}
