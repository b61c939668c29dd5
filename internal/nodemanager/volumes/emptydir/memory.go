package emptydir

import (
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// publishInMemory mounts a file system in memory, unless that was done before.
func (p Plugin) publishInMemory(spec volumes.Spec, dir string) error {
	mounted, err := p.ensureMountPoint(dir)
	if mounted || err != nil {
		return err
	}
	mode, group := modeOf(spec)
	return p.mounter.Tmpfs(dir, mount.TmpfsOptions{
		Bytes: memoryOf(spec), Mode: safepath.FileMode(mode), Group: group, NoSwap: true,
		Label: p.owner.Label(spec.Pod, spec.Volume.Name),
	})
}

// ensureMountPoint makes the directory that memory is mounted on, and says whether it is
// already.
func (p Plugin) ensureMountPoint(dir string) (mounted bool, err error) {
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return false, err
	}
	defer parent.Close()
	if err := safepath.EnsureDir(parent, filepath.Base(dir), mountPointMode); err != nil {
		return false, err
	}
	table, err := p.mounter.Table()
	return table.IsMountPoint(dir), err
}

// memoryOf is how much memory a volume may have: its sizeLimit, or all that the pod may
// have if that is less. 0: neither says anything.
func memoryOf(spec volumes.Spec) int64 {
	asked, most := limitOf(spec), podMemory(spec.Pod)
	if asked == 0 || most == 0 {
		return max(asked, most)
	}
	return min(asked, most)
}

// podMemory is how much memory a pod may have; 0 if one of its containers has no limit,
// and the pod has none either.
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
