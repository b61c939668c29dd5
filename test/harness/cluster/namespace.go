package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/stowage-dev/stowage/internal/mount"
)

const (
	// insideVariable is set in a process that runs as root of its own namespaces.
	insideVariable = "STOWAGE_INSIDE_NAMESPACE"
	// apartVariable is set in a process that has a mount namespace of its own.
	apartVariable = "STOWAGE_OWN_MOUNTS"
)

var (
	// unshare runs a program as root of a user and mount namespace of its own.
	unshare = []string{"unshare", "--user", "--map-root-user", "--mount", "--"}
	// apart runs a program in a mount namespace of its own.
	apart = []string{"unshare", "--mount", "--"}
)

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
	return become(unshare, insideVariable)
}

// EnsureOwnMounts is EnsureMayMount for a program whose mounts nothing else needs to see:
// root gets a mount namespace, too. Another test that makes one copies all mounts that it
// sees, and the loop device of a copied mount stays in use until that test ends.
func EnsureOwnMounts() error {
	if err := EnsureMayMount(); err != nil || InsideNamespace() || os.Getenv(apartVariable) != "" {
		return err
	}
	return become(apart, apartVariable)
}

// become makes this process this program again, run by a command, with a variable set.
func become(runner []string, variable string) error {
	path, err := exec.LookPath(runner[0])
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	command := slices.Concat(runner, []string{program}, os.Args[1:])
	return fmt.Errorf("entering a namespace: %w", syscall.Exec(path, command, append(os.Environ(), variable+"=1")))
}

// InsideNamespace reports whether this process's mounts can't be seen from outside.
func InsideNamespace() bool { return os.Getenv(insideVariable) != "" }
