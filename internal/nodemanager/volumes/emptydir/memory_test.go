package emptydir_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

const mebibyte = 1 << 20

// optionsAt is the options of the file system that is mounted at a path.
func optionsAt(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); fields[4] == path {
			return strings.Split(fields[len(fields)-1], ",")
		}
	}
	t.Fatalf("nothing is mounted at %s", path)
	return nil
}

func container(name corev1.ResourceName, amount string) corev1.Container {
	if amount == "" {
		return corev1.Container{}
	}
	list := corev1.ResourceList{name: resource.MustParse(amount)}
	return corev1.Container{Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}
}

//proves:emptyDir/Memory-sizeLimit
func TestMemoryIsAsLargeAsVolumeAndPodAllow(t *testing.T) {
	tests := map[string]struct {
		size   string
		limits []string
		whole  string
		want   int64
	}{
		"nothing is said":                  {"", []string{""}, "", 0},
		"the volume says it":               {"1Mi", []string{""}, "", mebibyte},
		"the containers say it":            {"", []string{"1Mi", "2Mi"}, "", 3 * mebibyte},
		"one container has no limit":       {"", []string{"1Mi", ""}, "", 0},
		"the volume asks for less":         {"1Mi", []string{"2Mi"}, "", mebibyte},
		"the volume asks for more":         {"4Mi", []string{"2Mi"}, "", 2 * mebibyte},
		"zero is nothing":                  {"0", []string{"2Mi"}, "", 2 * mebibyte},
		"the pod as a whole has a limit":   {"9Mi", []string{""}, "5Mi", 5 * mebibyte},
		"more than the pod, but no limits": {"9Mi", []string{""}, "", 9 * mebibyte},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := specOf(corev1.StorageMediumMemory, test.size)
			spec.Pod = &corev1.Pod{}
			for _, limit := range test.limits {
				spec.Pod.Spec.Containers = append(spec.Pod.Spec.Containers, container(corev1.ResourceMemory, limit))
			}
			if test.whole != "" {
				spec.Pod.Spec.Resources = new(container(corev1.ResourceMemory, test.whole).Resources)
			}
			if got := emptydir.MemoryOf(spec); got != test.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

//proves:emptyDir/HugePages
func TestHugePagesAreThoseThatThePodAsksFor(t *testing.T) {
	const both, two, one = "HugePages", "HugePages-2Mi", "HugePages-1Gi"
	tests := map[string]struct {
		medium corev1.StorageMedium
		pages  []corev1.ResourceName
		want   int64
	}{
		"one size":              {both, []corev1.ResourceName{"hugepages-2Mi", "memory"}, 2 * mebibyte},
		"one size, twice":       {both, []corev1.ResourceName{"hugepages-2Mi", "hugepages-2048Ki"}, 2 * mebibyte},
		"two sizes":             {both, []corev1.ResourceName{"hugepages-2Mi", "hugepages-1Gi"}, 0},
		"none":                  {both, []corev1.ResourceName{"memory"}, 0},
		"the one that is named": {one, []corev1.ResourceName{"hugepages-2Mi", "hugepages-1Gi"}, 1024 * mebibyte},
		"another one":           {two, []corev1.ResourceName{"hugepages-1Gi"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			for _, page := range test.pages {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, container(page, "1Gi"))
			}
			got, err := emptydir.PageOf(test.medium, pod)
			if got != test.want || (err == nil) != (test.want > 0) {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

//proves:emptyDir/HugePages
func TestAVolumeInHugePagesHasGroupAndLimit(t *testing.T) {
	mounttest.NeedsRoot(t)
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB"); err != nil {
		t.Skip("NOT RUN: this machine has no huge pages of 2Mi")
	}
	plugin, dir, spec := emptydir.New(mount.Kernel{}), newDir(t), withGroup(specOf("HugePages-2Mi", "4Mi"))
	spec.Pod.Spec.Containers = []corev1.Container{container("hugepages-2Mi", "8Mi")}
	for range 2 {
		if err := plugin.Publish(t.Context(), spec, dir); err != nil {
			t.Fatal(err)
		}
	}
	mustBePublished(t, plugin, mount.Kernel{}, spec, dir, true)
	mustBe(t, dir, someGroup, 0o2777)
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil || system.Bsize != 2*mebibyte || system.Blocks != 2 {
		t.Errorf("it has %d pages of %d (%v)", system.Blocks, system.Bsize, err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is still there (%v)", err)
	}
}
