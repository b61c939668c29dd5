package leftovers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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
	all, _ := procfs.AllProcs() // of one that is gone, there is nothing to read
	for _, process := range all {
		variables, _ := process.Environ()
		groups, _ := process.Cgroups()
		stat, _ := process.Stat()
		belongs := slices.ContainsFunc(variables, func(variable string) bool {
			path, found := strings.CutPrefix(variable, "TMPDIR=")
			return found && within(path, folder)
		}) || slices.ContainsFunc(groups, func(group procfs.Cgroup) bool { return within(group.Path, "/"+filepath.Base(folder)) })
		// One that has ended waits for nothing but its parent.
		if belongs && process.PID != os.Getpid() && stat.State != "Z" {
			pids = append(pids, process.PID)
		}
	}
	return pids
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
	process, _ := procfs.NewProc(pid) // one that is gone has no command
	arguments, _ := process.CmdLine()
	command := strings.Join(arguments, " ")
	return fmt.Sprintf("process %d (%s)", pid, command[:min(len(command), enough)])
}
