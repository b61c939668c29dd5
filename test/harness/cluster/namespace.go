package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/stowage-dev/stowage/internal/mount"
)

// insideVariable is set in a process that runs as root of its own namespaces.
const insideVariable = "STOWAGE_INSIDE_NAMESPACE"

// EnsureMayMount returns if this process may mount. Otherwise it runs this
// program again, as root of a user and mount namespace of its own, and ends with
// its exit status; where the machine does not allow that, the error says what
// would help. The mounts of such a namespace are seen from inside only, and are
// gone with it.
func EnsureMayMount() error {
	refused := mount.Kernel{}.Check()
	if refused == nil {
		return nil
	}
	if InsideNamespace() {
		return fmt.Errorf("mounting in a user namespace: %w", refused)
	}
	status, err := runInside()
	if err != nil {
		return err
	}
	os.Exit(status)
	return nil
}

// InsideNamespace says whether this process's mounts can't be seen from outside.
func InsideNamespace() bool { return os.Getenv(insideVariable) != "" }

func runInside() (status int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding this program: %w", err)
	}
	command := exec.Command(program, os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideVariable+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		// Its own process group: signals come through here, once each.
		Setpgid:   true,
		Pdeathsig: syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("mounting needs root, or a user namespace, which this machine refuses (%w): "+
			"run it as root, or let users have namespaces "+
			"(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)", err)
	}
	go func() {
		for s := range signals {
			_ = command.Process.Signal(s) // an error says that it is gone already
		}
	}()
	err = command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("running in a namespace: %w", err)
	}
	return exitStatus(command.ProcessState), nil
}

// exitStatus is what a shell would say: a program that a signal ended did not
// end well.
func exitStatus(state *os.ProcessState) int {
	if state.ExitCode() < 0 {
		return 1
	}
	return state.ExitCode()
}
