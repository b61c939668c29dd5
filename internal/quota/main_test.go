package quota_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/quota"
)

const mebibyte = 1 << 20

// someUser is one that has no rights, and leave has a process of this test, which is
// one of that user, remove the directory that it has open from its project.
const (
	someUser = 12345
	leave    = "STOWAGE_TEST_LEAVE_PROJECT"
)

func TestMain(m *testing.M) {
	if os.Getenv(leave) != "" {
		if err := quota.Leave(os.NewFile(3, "the directory")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	mounttest.Main(m)
}

// leaveAsSomeUser has a process of an ordinary user take a directory out of its project.
func leaveAsSomeUser(t *testing.T, path string, namespaces uintptr) error {
	t.Helper()
	child := exec.CommandContext(t.Context(), "/proc/self/exe")
	child.Env = append(os.Environ(), leave+"=yes")
	child.ExtraFiles = []*os.File{mounttest.Open(t, path)}
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	if namespaces == 0 {
		child.SysProcAttr.Credential = &syscall.Credential{Uid: someUser, Gid: someUser}
	} else {
		mapped := []syscall.SysProcIDMap{{ContainerID: someUser, HostID: someUser, Size: 1}}
		child.SysProcAttr.UidMappings, child.SysProcAttr.GidMappings = mapped, mapped
		child.SysProcAttr.Credential = &syscall.Credential{Uid: someUser, Gid: someUser, NoSetGroups: true}
	}
	output, err := child.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// kinds are the file systems that have project quotas: how they are made and mounted.
var kinds = map[string]struct{ make, options []string }{
	"ext4": {make: []string{"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=usrquota:grpquota:prjquota"}, options: []string{"prjquota"}},
	"xfs":  {make: []string{"mkfs.xfs", "-q"}, options: []string{"prjquota"}},
}

// onEach runs a test on each kind, with a new file system.
func onEach(t *testing.T, test func(t *testing.T, disk string)) {
	for kind, how := range kinds {
		t.Run(kind, func(t *testing.T) {
			disk := newDisk(t, kind, how.make, how.options[0])
			if !enforced(t, mounttest.Open(t, disk)) {
				t.Fatal("the file system was mounted with prjquota, and enforces no limits")
			}
			test(t, disk)
		})
	}
}

// newDisk mounts a new file system until the test ends. A kernel that can't keep
// quotas skips it.
func newDisk(t *testing.T, kind string, program []string, options string) string {
	t.Helper()
	mounttest.NeedsRoot(t)
	if _, err := exec.LookPath(program[0]); err != nil {
		t.Skipf("NOT RUN: %s is missing: install e2fsprogs and xfsprogs", program[0])
	}
	image, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := image.Truncate(320 * mebibyte); err != nil {
		t.Fatal(err)
	}
	arguments := slices.Concat(program[1:], []string{image.Name()})
	if output, err := exec.CommandContext(t.Context(), program[0], arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	loop, err := loopdev.Attach(t.Context(), image, loopdev.ForFileSystem)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	target := t.TempDir()
	err = unix.Mount(loop.Path(), target, kind, 0, options)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		t.Skipf("NOT RUN: this machine's kernel has no quotas on %s; make e2e-local has one that has", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	return target
}

// asContainer does something without the capability to exceed quotas, which
// containers haven't got, and root has.
func asContainer(work func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread has lost the capability, and ends with the goroutine.
		runtime.LockOSThread()
		header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{}
		if err := unix.Capget(header, &data[0]); err != nil {
			done <- err
			return
		}
		data[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
		if err := unix.Capset(header, &data[0]); err != nil {
			done <- err
			return
		}
		done <- work()
	}()
	return <-done
}

// write makes a file of some size, stored on the disk.
func write(path string, bytes int) error {
	return asContainer(func() error {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = file.Write(make([]byte, bytes))
		return errors.Join(err, file.Sync(), file.Close())
	})
}
