package mount_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// isSwappable reports whether the mount table shows that a file system in memory may be
// written to a disk.
func isSwappable(t *testing.T, path string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, " "+path+" ") {
			return !strings.Contains(line, "noswap")
		}
	}
	t.Fatalf("nothing is mounted at %s", path)
	return true
}

func TestWhatIsSecretIsNeverSwappedWhereTheKernelCanRefuseIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	kernel, dir := mount.Kernel{}, t.TempDir()
	if err := kernel.Tmpfs(dir, mount.TmpfsOptions{Mode: 0o755, NoSwap: true}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kernel.Unmount(dir) }()
	if known := knowsNoSwap(t); known == isSwappable(t, dir) {
		t.Errorf("the kernel knows noswap: %v; the mount can be swapped: %v", known, !known)
	}
}

func knowsNoSwap(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if unix.Mount("probe", dir, "tmpfs", 0, "noswap") != nil {
		return false
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	return true
}

// asOwnRoot is set in the environment of the process that is root of a user namespace.
const asOwnRoot = "STOWAGE_TEST_OWN_ROOT"

func TestWhereSwappingCannotBeRefusedItIsMountedAllTheSame(t *testing.T) {
	mounttest.NeedsRoot(t)
	if dir := os.Getenv(asOwnRoot); dir != "" {
		if err := (mount.Kernel{}).Tmpfs(dir, mount.TmpfsOptions{Mode: 0o755, NoSwap: true}); err != nil {
			t.Fatal(err)
		}
		return
	}
	child := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), asOwnRoot+"="+t.TempDir())
	self := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: self, GidMappings: self}
	if said, err := child.CombinedOutput(); err != nil || !strings.Contains(string(said), "--- PASS") {
		t.Errorf("in a user namespace: %v\n%s", err, said)
	}
}
