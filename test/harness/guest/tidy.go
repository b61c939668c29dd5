package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/stowage-dev/stowage/test/harness/leftovers"
)

// tidyLater starts a process that removes what namespaces don't hold: when tidy is called, or
// this process ends, in whatever way.
func tidyLater(folder Folder) (tidy func() error, err error) {
	process := exec.Command("/proc/self/exe", tidyArgument, folder.root)
	process.Stderr = os.Stderr
	// A session of its own: it doesn't end with the terminal's Ctrl-C.
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting what tidies up after the test: %w", err)
	}
	return func() error { return errors.Join(input.Close(), process.Wait()) }, nil
}

// tidy waits until its input ends, and removes the test's processes, its cgroups, its loop
// devices, and all its files but the logs.
func (f Folder) tidy(ctx context.Context) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := leftovers.Detach(ctx, f.root); err != nil {
		return fmt.Errorf("tidying up: %w", err)
	}
	return f.keepLogs()
}
