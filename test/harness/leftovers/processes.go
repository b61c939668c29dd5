package leftovers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	patience = time.Minute
	retry    = 50 * time.Millisecond
)

// processes are those that belong to a folder: by their environment, as those that a test
// starts, or by their cgroup, as those of containers.
func processes(folder string) (things []thing, err error) {
	for _, pid := range processesOf(folder) {
		things = append(things, thing{name: describe(pid)})
	}
	return things, nil
}

func processesOf(folder string) (pids []int) {
	for _, pid := range allProcesses() {
		belongs := slices.ContainsFunc(strings.Split(read(pid, "environ"), "\x00"), func(variable string) bool {
			path, found := strings.CutPrefix(variable, "TMPDIR=")
			return found && within(path, folder)
		})
		for line := range strings.Lines(read(pid, "cgroup")) {
			// hierarchy:controllers:path
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			belongs = belongs || within(parts[len(parts)-1], "/"+filepath.Base(folder))
		}
		// One that has ended waits for nothing but its parent.
		if belongs && pid != os.Getpid() && !strings.Contains(read(pid, "stat"), ") Z ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func allProcesses() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, process := range found {
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// read returns what the kernel has of a process; nothing, of one that is gone.
func read(pid int, file string) string {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	return string(content)
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func killProcesses(ctx context.Context, folder string) error {
	return until(ctx, func() error {
		pids := processesOf(folder)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // an error says that it has ended
		}
		if len(pids) > 0 {
			return errors.New("it doesn't end")
		}
		return nil
	})
}

// until tries again what can't be done while the kernel ends processes.
func until(ctx context.Context, try func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, retry, patience, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	return errors.Join(last, err)
}

func describe(pid int) string {
	const enough = 100
	command := strings.TrimSpace(strings.ReplaceAll(read(pid, "cmdline"), "\x00", " "))
	return fmt.Sprintf("process %d (%s)", pid, command[:min(len(command), enough)])
}
