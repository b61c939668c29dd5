package persistentvolume

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// runManager runs bin/manager until the context ends, and kills it then. Its life is
// tied to this thread's, so that a test that is killed leaves no manager.
func (c *PersistentVolumeController) runManager(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log, err := os.Create(filepath.Join(os.Getenv("STOWAGE_LOGS"), c.name+"-manager.log"))
	if err != nil {
		return fmt.Errorf("making the manager's log: %w", err)
	}
	defer log.Close()
	manager := exec.CommandContext(ctx, filepath.Join(os.Getenv("STOWAGE_REPOSITORY"), "bin", "manager"),
		// It is the only one, as upstream's controller is, and none starts it again.
		"--leader-elect=false",
		"--scope=cluster", "--kubeconfig="+c.kubeconfig, "--leader-election-namespace="+namespace,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--log-format=console")
	manager.Stdout, manager.Stderr = log, log
	manager.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return manager.Run()
}
