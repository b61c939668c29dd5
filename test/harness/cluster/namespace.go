package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/stowage-dev/stowage/internal/mount"
)

// insideVariable is set in a process that runs as root of its own namespaces.
const insideVariable = "STOWAGE_INSIDE_NAMESPACE"

// unshare runs a program as root of a user and mount namespace of its own.
var unshare = []string{"unshare", "--user", "--map-root-user", "--mount", "--"}

// EnsureMayMount returns if this process may mount. Otherwise this process becomes
// this program again, as root of a user and mount namespace of its own; where the machine
// does not allow that, the error says what would help. The mounts of such a namespace
// are seen from inside only, and are gone with it.
func EnsureMayMount() error {
	refused := mount.Kernel{}.Check()
	if refused == nil {
		return nil
	}
	if InsideNamespace() {
		return fmt.Errorf("mounting in a user namespace: %w", refused)
	}
	if output, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		return fmt.Errorf("mounting needs root, or a user namespace, which this machine refuses (%w: %s): "+
			"run it as root, or let users have namespaces "+
			"(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)", err, output)
	}
	path, err := exec.LookPath(unshare[0])
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	command := append(append(unshare, program), os.Args[1:]...)
	return fmt.Errorf("entering a namespace: %w", syscall.Exec(path, command, append(os.Environ(), insideVariable+"=1")))
}

// InsideNamespace reports whether this process's mounts can't be seen from outside.
func InsideNamespace() bool { return os.Getenv(insideVariable) != "" }
