package nodemanager

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/subpath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

// described is a reconciler that has described a pod's container.
func described(t *testing.T, set ...func(*Options)) (*bench, *corev1.Pod, string) {
	t.Helper()
	pod := nodetest.PodOnNode(nodetest.SomePod)
	pod.Spec.Containers = []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}}}}
	bench := newBench(t, clientWith(interceptor.Funcs{}, pod), clientWith(interceptor.Funcs{}, pod), set...)
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}
	return bench, pod, filepath.Join(bench.Tree.PodDir(nodetest.SomePod), "containers", "main", "mounts.json")
}

func TestADescriptionOfAContainerExistsWhileItsVolumesAreMounted(t *testing.T) {
	tests := map[string]struct {
		at         podstatus.Progress
		unresolved error
		stays      bool
	}{
		"mounted":          {podstatus.Progress{Done: true}, nil, true},
		"unresolved":       {podstatus.Progress{Err: errors.New("down")}, errors.New("down"), true},
		"unmounted":        {podstatus.Progress{}, nil, false},
		"can't be mounted": {podstatus.Progress{Err: errors.New("disk full")}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bench, pod, path := described(t)
			wanted := bench.desired.Want(pod)
			wanted.Volumes[0].Unresolved = test.unresolved
			if err := ensureDescribed(bench.Tree, &pass{pod: pod, desired: wanted, states: []podstatus.Progress{test.at}}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); (err == nil) != test.stays {
				t.Errorf("looking for it gave %v", err)
			}
		})
	}
}

func TestAVolumeIsUnmountedAfterItsParts(t *testing.T) {
	bench, _, written := described(t)
	mounter, target := bench.Mounter.(*mounttest.Fake), bench.Tree.SubPath(nodetest.SomePod, "scratch", "main", 0)
	if err := errors.Join(os.MkdirAll(target, 0o750), mounter.Tmpfs(target, mount.TmpfsOptions{})); err != nil {
		t.Fatal(err)
	}
	mounter.Refuse(target, errors.New("busy"))
	for range 3 {
		_, problems := bench.remover.ensureGone(t.Context(), nodetest.SomePod)
		bench.operations.Wait()
		if _, err := os.Stat(written); !os.IsNotExist(err) {
			t.Errorf("it is still described (%v)", err)
		}
		if !bench.alive() {
			t.Fatalf("the volume was removed under its part (%v)", problems)
		}
	}
	mounter.Refuse(target, nil)
	bench.operations.Forget(nodetest.SomePod)
	for range 5 {
		if again, problems := bench.remover.ensureGone(t.Context(), nodetest.SomePod); again == 0 && problems == nil {
			return
		}
		bench.operations.Wait()
	}
	t.Error("it isn't gone")
}

func TestNoPartIsMadeInTheDirectoryUnderAVolumeThatWasUnmounted(t *testing.T) {
	mounttest.NeedsRoot(t)
	kernel := mount.Kernel{}
	bench, pod, _ := described(t, func(options *Options) { options.Mounter = kernel })
	pod.Spec.Volumes[0].EmptyDir.Medium = corev1.StorageMediumMemory
	resolved := *bench.desired.Want(pod).Volumes[0].Resolved
	resolved.Volume = pod.Spec.Volumes[0]
	resolved.Plugin = emptydir.New(kernel)
	err := bench.subPaths.mount(t.Context(), nodetest.SomePod, &resolved, []subpath.Part{{
		Path: "logs", Written: "subPath logs", Target: bench.Tree.SubPath(nodetest.SomePod, "scratch", "main", 0),
	}})
	if !resolve.IsWait(err) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(bench.canary), "logs")); !os.IsNotExist(err) {
		t.Errorf("it was made (%v)", err)
	}
}
