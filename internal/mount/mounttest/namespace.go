package mounttest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/test/harness/owned"
)

// inNamespace is set in the environment of a test that may mount.
const inNamespace = "STOWAGE_TEST_PRIVATE_MOUNTS"

// Main runs a package's tests, for its TestMain. Where it may, it runs them in a
// mount namespace of their own: whatever a test mounts, and doesn't unmount, is
// gone with the process. What else they leave if they are killed is found by their
// temporary folder. What ends something that the tests share is called after them.
func Main(m *testing.M, ends ...func() error) {
	remote.ServeCall()
	if os.Getenv(inNamespace) != "" {
		os.Exit(runAndEnd(m, ends))
	}
	remove, err := owned.Temporary("t")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the tests:", err)
		os.Exit(1)
	}
	status := run(m, ends)
	if err := remove(); err != nil {
		fmt.Fprintln(os.Stderr, "removing the folder of the tests:", err)
	}
	os.Exit(status)
}

func runAndEnd(m *testing.M, ends []func() error) int {
	status := m.Run()
	for _, end := range ends {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "after the tests:", err)
			return 1
		}
	}
	return status
}

func run(m *testing.M, ends []func() error) (status int) {
	if (mount.Kernel{}).Check() != nil {
		return runAndEnd(m, ends)
	}
	// The child is killed with the thread that started it.
	runtime.LockOSThread()
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), inNamespace+"=yes")
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	default:
		fmt.Fprintln(os.Stderr, "running the tests in a mount namespace of their own:", err)
		return 1
	}
}

// MayMount reports whether tests may really mount. It needs Main.
func MayMount() bool {
	return os.Getenv(inNamespace) != "" && (mount.Kernel{}).Check() == nil
}

// NeedsRoot skips a test that can not really mount, with a message.
func NeedsRoot(t testing.TB) {
	t.Helper()
	if !MayMount() {
		t.Skip("NOT RUN: needs root, and a mount namespace of its own, to mount")
	}
}
