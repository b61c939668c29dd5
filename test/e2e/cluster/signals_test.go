package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Signals ends processes of a node.
type Signals struct{}

// Kill kills the processes of a program with -9. It fails if there is none.
func (Signals) Kill(program string, _ *guest.Nothing) error {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	killed := 0
	for _, process := range processes {
		command, _ := os.ReadFile(process) // one that has ended isn't one of them
		if !strings.HasPrefix(string(command), program+"\x00") {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(process)))
		if err != nil {
			return err
		}
		err = unix.Kill(id, unix.SIGKILL)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("killing process %d, %q: %w", id, command, err)
		}
		killed++
	}
	if killed == 0 {
		return fmt.Errorf("no process of %s runs", program)
	}
	return nil
}
