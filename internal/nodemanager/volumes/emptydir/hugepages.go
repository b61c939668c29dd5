package emptydir

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// publishInHugePages mounts a hugetlbfs, unless one is mounted.
func publishInHugePages(mounter mount.Mounter, spec volumes.Spec, dir, label string) error {
	page, err := pageOf(spec.Volume.EmptyDir.Medium, spec.Pod)
	if err != nil {
		return err
	}
	mounted, err := ensureMountPoint(mounter, dir)
	if mounted || err != nil {
		return err
	}
	mode, group := modeOf(spec)
	settings := []mount.Setting{
		{Key: "pagesize", Value: strconv.FormatInt(page, 10)},
		{Key: "gid", Value: strconv.Itoa(group)},
	}
	if limit := limitOf(spec); limit > 0 {
		settings = append(settings, mount.Setting{Key: "size", Value: strconv.FormatInt(limit, 10)})
	}
	settings = append(settings, ownership.LabelSettings(label)...)
	// The file system's own option for the mode takes no setgid.
	system := mount.FileSystem{Type: "hugetlbfs", Source: "hugetlbfs", Settings: settings, Mode: safepath.FileMode(mode)}
	return mounter.FileSystem(system, dir)
}

// pageOf is the page size of a medium: the one that it names, or the only one that the pod's
// containers request. The containers must request it in any case.
func pageOf(medium corev1.StorageMedium, pod *corev1.Pod) (int64, error) {
	asked, err := pagesOf(pod)
	if err != nil {
		return 0, err
	}
	size, named := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
	if named {
		page, err := resource.ParseQuantity(size)
		if err != nil {
			return 0, fmt.Errorf("emptyDir with medium %s is %w: name a size of pages, such as HugePages-2Mi", medium, volumes.ErrNotSupported)
		}
		if !slices.Contains(asked, page.Value()) {
			return 0, fmt.Errorf("no container of the pod asks for hugepages-%s: add them to its resources", size)
		}
		return page.Value(), nil
	}
	if medium != corev1.StorageMediumHugePages {
		return 0, fmt.Errorf("emptyDir with medium %s is %w: use HugePages-<size>", medium, volumes.ErrNotSupported)
	}
	if len(asked) != 1 {
		return 0, errors.New("medium HugePages is for pods whose containers ask for huge pages of exactly one size: use HugePages-<size>")
	}
	return asked[0], nil
}

// pagesOf returns the sizes of huge pages that a pod's containers request, each once.
func pagesOf(pod *corev1.Pod) ([]int64, error) {
	if pod == nil {
		return nil, nil
	}
	var lists []corev1.ResourceList
	if pod.Spec.Resources != nil {
		lists = append(lists, pod.Spec.Resources.Requests)
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		lists = append(lists, container.Resources.Requests)
	}
	var pages []int64
	for _, list := range lists {
		for name := range list {
			size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !huge {
				continue
			}
			page, err := resource.ParseQuantity(size)
			if err != nil {
				return nil, fmt.Errorf("reading the size of %s, which a container asks for: %w", name, err)
			}
			pages = append(pages, page.Value())
		}
	}
	slices.Sort(pages)
	return slices.Compact(pages), nil
}
