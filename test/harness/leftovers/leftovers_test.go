package leftovers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/test/harness/owned"
)

// asOwner is set in the environment of a process that plays a test.
const asOwner = "STOWAGE_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(asOwner) != "" {
		if err := leaveThings(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	mounttest.Main(m)
}

// leaveThings makes one of each kind, says which, and waits to be killed.
func leaveThings() error {
	folder, err := owned.Folder("left")
	if err != nil {
		return err
	}
	mounted, socket := filepath.Join(folder, "mounted"), filepath.Join(folder, "s")
	image, group := filepath.Join(mounted, "image"), cgroupOf(folder)
	if err := os.Mkdir(mounted, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size=16m"); err != nil {
		return err
	}
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	loop, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		return err
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "1000")
	child.Env = append(os.Environ(), "TMPDIR="+mounted)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	// A program begins without an environment, for a moment.
	err = until(context.Background(), func() error {
		if environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child.Process.Pid)); err != nil || len(environment) == 0 {
			return errors.New("the child has no environment")
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println(strings.Join([]string{
		folder, mounted, string(bytes.TrimSpace(loop)), group, socket, fmt.Sprintf("process %d (sleep 1000)", child.Process.Pid),
	}, "\t"))
	// A select without a case would be a deadlock, which ends the process.
	_, err = listener.Accept()
	return err
}

// cgroupOf is in the first tree that there is.
func cgroupOf(folder string) string {
	trees, err := filepath.Glob("/sys/fs/cgroup/*/tasks")
	if err != nil || len(trees) == 0 {
		return "/sys/fs/cgroup/" + filepath.Base(folder)
	}
	return filepath.Join(filepath.Dir(trees[0]), filepath.Base(folder))
}

// owner starts a process that has things in root, whose names it returns, the folder first.
func owner(t *testing.T, root string) (*exec.Cmd, []string) {
	t.Helper()
	mounttest.NeedsRoot(t)
	if _, err := exec.LookPath("losetup"); err != nil {
		t.Skip("NOT RUN: needs losetup")
	}
	process := exec.Command("/proc/self/exe")
	process.Env, process.Stderr = append(os.Environ(), asOwner+"=yes", "TMPDIR="+root), os.Stderr
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill(process)
		// The test's own context has ended by now: nothing would be waited for.
		if err := (Cleaner{Root: root, Output: t.Output()}).Clean(context.WithoutCancel(t.Context())); err != nil {
			t.Log(err)
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return process, strings.Split(strings.TrimSpace(line), "\t")
}

// shortFolder has a path of which the kernel keeps enough with a loop device.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "") //nolint:usetesting // t.TempDir has the test's name in it, and is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func kill(process *exec.Cmd) {
	_ = process.Process.Kill()
	_ = process.Wait() // it was killed, or had been
}

// clean cleans root, and returns what it said.
func clean(t *testing.T, cleaner Cleaner) (said string, err error) {
	t.Helper()
	var output bytes.Buffer
	cleaner.Output = &output
	err = cleaner.Clean(t.Context())
	t.Log(output.String())
	return output.String(), err
}

func TestWhatAKilledTestLeftIsNamedAndRemoved(t *testing.T) {
	root := shortFolder(t)
	process, things := owner(t, root)
	kill(process)

	said, err := clean(t, Cleaner{Root: root, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, thing := range things {
		if !strings.Contains(said, "would remove: ") || !strings.Contains(said, thing) {
			t.Errorf("a dry run doesn't name %s", thing)
		}
	}
	if _, err := os.Stat(things[0]); err != nil {
		t.Errorf("a dry run removed something: %v", err)
	}

	if said, err = clean(t, Cleaner{Root: root}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"process ", "mount ", "loop device ", "cgroup ", "socket ", "folder "} {
		if !strings.Contains(said, "removed: "+kind) {
			t.Errorf("no %swas removed", kind)
		}
	}
	for _, path := range []string{things[0], things[3]} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	loops, err := allLoops()
	if err != nil || slices.ContainsFunc(loops, func(l loop) bool { return within(l.file, root) }) {
		t.Errorf("there are loop devices %v, %v", loops, err)
	}
	if said, err = clean(t, Cleaner{Root: root}); said != "" || err != nil {
		t.Errorf("again: %q, %v", said, err)
	}
}

func TestWhatALiveTestHasIsLeftAloneAndNamed(t *testing.T) {
	root := shortFolder(t)
	process, things := owner(t, root)
	said, err := clean(t, Cleaner{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("left alone: %s, in use by process %d (", things[0], process.Process.Pid); !strings.HasPrefix(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("it said %q", said)
	}
	for _, kind := range kinds {
		if found, err := kind.find(things[0]); len(found) == 0 || err != nil {
			t.Errorf("something is gone: %v, %v", found, err)
		}
	}
}

func TestWhatIsNoTestsIsNeitherTouchedNorNamed(t *testing.T) {
	root := shortFolder(t)
	mounttest.NeedsRoot(t)
	plain := filepath.Join(root, owned.Prefix+"of-a-person")
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	mounttest.Tmpfs(t, plain)
	// It has a folder of a test's for its own, by a link.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, ".owner"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(root, owned.Prefix+"link")); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "1000")
	child.Env = append(os.Environ(), "TMPDIR="+plain)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer kill(child)

	if said, err := clean(t, Cleaner{Root: root}); said != "" || err != nil {
		t.Errorf("it said %q, %v", said, err)
	}
	if err := child.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
	if found, err := mounts(plain); len(found) != 1 || err != nil {
		t.Errorf("the mount is gone: %v, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(other, ".owner")); err != nil {
		t.Error(err)
	}
}

func TestWhatAProcessHoldsIsKeptAndTheHolderNamed(t *testing.T) {
	root := shortFolder(t)
	process, things := owner(t, root)
	kill(process)
	child := exec.Command("sleep", "1000")
	child.Dir = things[1]
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer kill(child)

	said, err := clean(t, Cleaner{Root: root})
	if err == nil {
		t.Error("there is no error")
	}
	for _, want := range []string{"kept: mount " + things[1], fmt.Sprintf("held by process %d (\"sleep 1000\")", child.Process.Pid)} {
		if !strings.Contains(said, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
	kill(child)
	if _, err := clean(t, Cleaner{Root: root}); err != nil {
		t.Errorf("once the holder is gone: %v", err)
	}
}

func TestADetachedFolderKeepsItsFilesAndNothingElse(t *testing.T) {
	process, things := owner(t, shortFolder(t))
	kill(process)
	if err := Detach(t.Context(), things[0]); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds[:len(kinds)-1] {
		if left, err := kind.find(things[0]); len(left) > 0 || err != nil {
			t.Errorf("there is %v, %v", left, err)
		}
	}
	if _, err := os.Stat(filepath.Join(things[0], ".owner")); err != nil {
		t.Error(err)
	}
}

// Mounts of a mount namespace go with it: what the kernel then reports of the device's file
// is its path on a file system that is mounted nowhere.
func TestALoopDeviceOnAFileSystemThatIsMountedNowhereIsRemoved(t *testing.T) {
	root := shortFolder(t)
	process, things := owner(t, root)
	kill(process)
	if err := unix.Unmount(things[1], unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	said, err := clean(t, Cleaner{Root: root})
	if !strings.Contains(said, "removed: loop device "+things[2]) || err != nil {
		t.Errorf("it said %q, %v", said, err)
	}
}

func TestALoopDeviceOfAFolderThatIsGoneIsRemoved(t *testing.T) {
	mounttest.NeedsRoot(t)
	root := shortFolder(t)
	folder := filepath.Join(root, owned.Prefix+"gone")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(folder, "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Skip("NOT RUN: needs losetup")
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	said, err := clean(t, Cleaner{Root: root})
	if want := "removed: loop device " + strings.TrimSpace(string(device)) + " of " + image + "\n"; said != want || err != nil {
		t.Errorf("it said %q, not %q: %v", said, want, err)
	}
}
