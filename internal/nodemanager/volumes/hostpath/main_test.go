package hostpath_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

var kernel = mount.Kernel{}

// ofPod is a volume that a pod names itself, and ofObject one of a volume object.
func ofPod(path string, kind corev1.HostPathType) volumes.Spec {
	source := &corev1.HostPathVolumeSource{Path: path, Type: &kind}
	return volumes.Spec{Volume: corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: source}}}
}

func ofObject(path string, kind corev1.HostPathType) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Spec.HostPath = ofPod(path, kind).Volume.HostPath
	return volumes.Spec{PersistentVolume: volume}
}

// newPlugin is the volume type of an agent, and the directory of a volume in its tree.
func newPlugin(t *testing.T) (hostpath.Plugin, string) {
	t.Helper()
	agent := tempDir(t)
	t.Cleanup(func() {
		if err := mount.UnmountBelow(kernel, agent); err != nil {
			t.Error(err)
		}
	})
	return hostpath.New(kernel, agent), filepath.Join(agent, "volume")
}

// tempDir is a temporary directory, by the path that the mount table shows.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newHost is a directory with one of everything that a hostPath can be, by its name.
func newHost(t *testing.T) string {
	t.Helper()
	host := tempDir(t)
	at := func(name string) string { return filepath.Join(host, name) }
	null, loop := int(unix.Mkdev(1, 3)), int(unix.Mkdev(7, 0))
	for _, err := range []error{
		os.Mkdir(at("directory"), 0o700),
		os.WriteFile(at("file"), []byte("hello"), 0o600),
		unix.Mknod(at("socket"), unix.S_IFSOCK|0o600, 0),
		os.Symlink("file", at("link to file")),
		os.Symlink("directory", at("link to directory")),
		os.Symlink("missing", at("link to nothing")),
		unix.Mknod(at("character device"), unix.S_IFCHR|0o600, null),
		unix.Mknod(at("block device"), unix.S_IFBLK|0o600, loop),
		unix.Mkfifo(at("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return host
}

// mustBeSame fails unless two paths lead to one file.
func mustBeSame(t *testing.T, a, b string) {
	t.Helper()
	first, firstErr := os.Stat(a)
	second, secondErr := os.Stat(b)
	if firstErr != nil || secondErr != nil || !os.SameFile(first, second) {
		t.Errorf("%s and %s aren't the same (%v, %v)", a, b, firstErr, secondErr)
	}
}

func mustNotExist(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there (%v)", path, err)
	}
}
