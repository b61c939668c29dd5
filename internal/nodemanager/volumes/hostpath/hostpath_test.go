package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// served is what each type shows pods, by what is at the path.
var served = map[corev1.HostPathType][]string{
	corev1.HostPathUnset:             {"directory", "file", "socket", "character device", "block device", "pipe", "link to file", "link to directory"},
	corev1.HostPathDirectory:         {"directory", "link to directory"},
	corev1.HostPathDirectoryOrCreate: {"directory", "link to directory"},
	corev1.HostPathFile:              {"file", "link to file"},
	corev1.HostPathFileOrCreate:      {"file", "link to file"},
	corev1.HostPathSocket:            {"socket"},
	corev1.HostPathCharDev:           {"character device"},
	corev1.HostPathBlockDev:          {"block device"},
}

//proves:hostPath/type
func TestThePathIsMountedAndStaysWhenThePodIsGone(t *testing.T) {
	mounttest.NeedsRoot(t)
	host := newHost(t)
	for kind, names := range served {
		for _, name := range names {
			t.Run("type "+string(kind)+" of a "+name, func(t *testing.T) {
				plugin, dir := newPlugin(t)
				path := filepath.Join(host, name)
				for _, spec := range []volumes.Spec{ofPod(path, kind), ofObject(path, kind)} {
					// Twice: an agent may die before it knows that the first one was done.
					for range 2 {
						if err := plugin.Publish(t.Context(), spec, dir); err != nil {
							t.Fatal(err)
						}
					}
					mustBeSame(t, dir, path)
					mustBePublished(t, plugin, spec, dir)

					for range 2 {
						if err := plugin.Unpublish(t.Context(), dir); err != nil {
							t.Fatal(err)
						}
					}
					mustNotExist(t, dir)
					if _, err := os.Lstat(path); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

//proves:hostPath/type
func TestAPathOfAnotherTypeIsRefusedWithAdvice(t *testing.T) {
	mounttest.NeedsRoot(t) // it makes devices
	host := newHost(t)
	tests := []struct {
		kind corev1.HostPathType
		name string
		says string
	}{
		{corev1.HostPathDirectory, "file", "has type Directory, and " + host + "/file on this node is a file, not a directory: correct the path, or the type"},
		{corev1.HostPathDirectoryOrCreate, "socket", "is a socket, not a directory"},
		{corev1.HostPathFile, "directory", "is a directory, not a file"},
		{corev1.HostPathFileOrCreate, "directory", "is a directory, not a file"},
		{corev1.HostPathFile, "pipe", "is something else, not a file"},
		{corev1.HostPathFile, "link to directory", "is a directory, not a file"},
		{corev1.HostPathSocket, "file", "is a file, not a socket"},
		{corev1.HostPathCharDev, "block device", "is a block device, not a character device"},
		{corev1.HostPathBlockDev, "character device", "is a character device, not a block device"},
		{corev1.HostPathDirectory, "missing", "create the directory there, or give"},
		{corev1.HostPathFile, "missing", "create the file there, or give"},
		{corev1.HostPathFileOrCreate, "missing/file", host + "/missing doesn't exist on this node: the file is made only in a directory that is there"},
		{corev1.HostPathSocket, "missing", "start what listens on the socket"},
		{corev1.HostPathCharDev, "missing", "load the driver"},
		{corev1.HostPathBlockDev, "missing", "attach the device"},
		{corev1.HostPathUnset, "link to nothing", "is a symlink"},
		{corev1.HostPathDirectoryOrCreate, "link to nothing", "is a symlink"},
		{corev1.HostPathFileOrCreate, "link to nothing", "is a symlink"},
		{corev1.HostPathDirectoryOrCreate, "file/below", "not a directory"},
		{"Something", "file", "hostPath with type Something is not supported"},
	}
	for _, test := range tests {
		t.Run("type "+string(test.kind)+" of a "+test.name, func(t *testing.T) {
			plugin, dir := newPlugin(t)
			err := plugin.Publish(t.Context(), ofPod(filepath.Join(host, test.name), test.kind), dir)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, volumes.ErrNotSupported) != (test.kind == "Something") {
				t.Errorf("it can't be cured: %v", err)
			}
			mustNotExist(t, dir)
			mustNotExist(t, filepath.Join(host, "missing"))
		})
	}
}

//proves:hostPath/type
func TestAMissingPathIsMadeIfTheTypeAllowsIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	for kind, mode := range map[corev1.HostPathType]os.FileMode{
		corev1.HostPathUnset:             os.ModeDir | 0o755,
		corev1.HostPathDirectoryOrCreate: os.ModeDir | 0o755,
		corev1.HostPathFileOrCreate:      0o644,
	} {
		t.Run(string(kind), func(t *testing.T) {
			plugin, dir := newPlugin(t)
			path := filepath.Join(newHost(t), "link to directory", "made")
			if kind != corev1.HostPathFileOrCreate {
				path = filepath.Join(path, "with", "all above it")
			}
			if err := plugin.Publish(t.Context(), ofPod(path, kind), dir); err != nil {
				t.Fatal(err)
			}
			mustBeSame(t, dir, path)
			if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
				t.Errorf("it is %v (%v)", info.Mode(), err)
			}
		})
	}
}

func TestAPathThatChangesAfterItWasOpenedChangesNothing(t *testing.T) {
	mounttest.NeedsRoot(t)
	host := newHost(t)
	path := filepath.Join(host, "switched")
	rename := func(name string) {
		if err := errors.Join(os.Remove(path), os.Symlink(name, path)); err != nil {
			t.Error(err)
		}
	}
	if err := os.Symlink("file", path); err != nil {
		t.Fatal(err)
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			default:
				rename("directory")
				rename("socket")
				rename("file")
			}
		}
	}()
	plugin, dir := newPlugin(t)
	mounted := 0
	for range 2000 {
		if plugin.Publish(t.Context(), ofPod(path, corev1.HostPathFile), dir) == nil {
			mounted++
			mustBeSame(t, dir, filepath.Join(host, "file"))
		}
		if err := plugin.Unpublish(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	close(over)
	<-stopped
	if mounted == 0 || mounted == 2000 {
		t.Errorf("of 2000 attempts, %d found a file", mounted)
	}
}

func mustBePublished(t *testing.T, plugin volumes.Plugin, spec volumes.Spec, dir string) {
	t.Helper()
	if published, err := plugin.IsPublished(tableOf(t), spec, dir); err != nil || !published {
		t.Errorf("published: %v (%v)", published, err)
	}
}
