package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// seenBy is a volume whose pod has a privileged container for each of these.
func seenBy(spec volumes.Spec, mounts ...corev1.VolumeMount) volumes.Spec {
	spec.Pod = &corev1.Pod{}
	for _, seen := range mounts {
		spec.Pod.Spec.Containers = append(spec.Pod.Spec.Containers, corev1.Container{
			Name: "main", VolumeMounts: []corev1.VolumeMount{seen},
			SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		})
	}
	return spec
}

func with(propagation corev1.MountPropagationMode) corev1.VolumeMount {
	return corev1.VolumeMount{Name: "host", MountPropagation: &propagation}
}

var (
	none   = with(corev1.MountPropagationNone)
	toPod  = with(corev1.MountPropagationHostToContainer)
	both   = with(corev1.MountPropagationBidirectional)
	silent = corev1.VolumeMount{Name: "host"}
	other  = corev1.VolumeMount{Name: "other", MountPropagation: both.MountPropagation}
)

//proves:hostPath/mountPropagation
func TestLaterMountsPropagateAsFarAsAContainerAsksFor(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, test := range map[string]struct {
		mounts        []corev1.VolumeMount
		toPod, toNode bool
	}{
		"nothing":               {[]corev1.VolumeMount{silent, none}, false, false},
		"of another volume":     {[]corev1.VolumeMount{silent, other}, false, false},
		"HostToContainer":       {[]corev1.VolumeMount{none, toPod}, true, false},
		"Bidirectional":         {[]corev1.VolumeMount{both, toPod, none}, true, true},
		"by no container known": {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			host, inner := newSharedHost(t)
			plugin, dir := newPlugin(t)
			if err := plugin.Publish(t.Context(), seenBy(ofPod(host, corev1.HostPathDirectory), test.mounts...), dir); err != nil {
				t.Fatal(err)
			}
			mustBeSame(t, filepath.Join(dir, "inner", "file"), filepath.Join(inner, "file"))
			later, own := filepath.Join(host, "later"), filepath.Join(dir, "own")
			if err := errors.Join(os.Mkdir(later, 0o755), os.Mkdir(own, 0o755)); err != nil {
				t.Fatal(err)
			}

			mounttest.Tmpfs(t, later)
			if err := kernel.Tmpfs(own, mount.TmpfsOptions{}); err != nil {
				t.Fatal(err)
			}

			table := tableOf(t)
			if toPod, toNode := table.IsMountPoint(filepath.Join(dir, "later")), table.IsMountPoint(filepath.Join(host, "own")); toPod != test.toPod || toNode != test.toNode {
				t.Errorf("the pod sees the node's: %v, and the node the pod's: %v", toPod, toNode)
			}
			if err := plugin.Unpublish(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			mustNotExist(t, dir)
			table = tableOf(t)
			if !table.IsMountPoint(inner) || !table.IsMountPoint(later) || table.IsMountPoint(filepath.Join(host, "own")) != test.toNode {
				t.Errorf("of the node's own, this is left: %+v", table.Below(host))
			}
			if err := kernel.Unmount(filepath.Join(host, "own")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAVolumeWithPropagationIsUnmountedByTheNextAgent(t *testing.T) {
	mounttest.NeedsRoot(t)
	host, inner := newSharedHost(t)
	plugin, dir := newPlugin(t)
	spec := seenBy(ofPod(host, corev1.HostPathDirectory), both)
	for range 2 {
		if err := plugin.Publish(t.Context(), spec, dir); err != nil {
			t.Fatal(err)
		}
	}
	mustBePublished(t, plugin, spec, dir)
	// An agent that died after it had set the mounts apart, and before it unmounted them.
	if err := kernel.MakePrivate(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := plugin.Unpublish(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if !tableOf(t).IsMountPoint(inner) {
		t.Error("the node's own mount is gone")
	}
}

//proves:hostPath/mountPropagation
func TestImpossibleMountPropagationIsAnError(t *testing.T) {
	mounttest.NeedsRoot(t)
	part := toPod
	part.SubPath = "inner"
	unprivileged := func(spec volumes.Spec) volumes.Spec {
		spec.Pod.Spec.Containers[0].SecurityContext = nil
		return spec
	}
	shared, _ := newSharedHost(t)
	private := tempDir(t)
	mounttest.Tmpfs(t, private)
	if err := unix.Mount("", private, "", unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	at := func(path string) volumes.Spec { return ofPod(path, corev1.HostPathDirectory) }
	for name, test := range map[string]struct {
		spec    volumes.Spec
		says    string
		forGood bool
	}{
		"of a part":                      {seenBy(at(shared), part), "of a part of a hostPath", true},
		"for a container without rights": {unprivileged(seenBy(at(shared), both)), "privileged containers only", false},
		"where mounts are no one else's": {seenBy(at(private), toPod), "mount --make-rshared", false},
		"both ways, where they are not":  {seenBy(at(private), both), "mount --make-rshared", false},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, dir := newPlugin(t)
			err := plugin.Publish(t.Context(), test.spec, dir)
			if err == nil || !strings.Contains(err.Error(), test.says) || errors.Is(err, volumes.ErrNotSupported) != test.forGood {
				t.Errorf("got %v", err)
			}
			if tableOf(t).IsMountPoint(dir) {
				t.Error("it is mounted")
			}
		})
	}
}

func TestAPathWithAllPodsVolumesHasNoPropagation(t *testing.T) {
	mounttest.NeedsRoot(t)
	plugin, dir := newPlugin(t)
	agent := filepath.Dir(dir)
	mounttest.Tmpfs(t, agent)
	if err := unix.Mount("", agent, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	err := plugin.Publish(t.Context(), seenBy(ofPod(agent, corev1.HostPathDirectory), toPod), dir)
	if !errors.Is(err, volumes.ErrNotSupported) || !strings.Contains(err.Error(), "where all pods' volumes are mounted") {
		t.Errorf("got %v", err)
	}
}
