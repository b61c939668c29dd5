package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tidyPatience is how long the last processes of a test that was killed may take to
	// be gone, and tidyRetry how often that is looked at.
	tidyPatience = time.Minute
	tidyRetry    = 100 * time.Millisecond
)

// tidier outlives this process, also where it is killed.
type tidier struct {
	process *exec.Cmd
	input   io.WriteCloser
}

// startTidying starts a process that removes what namespaces don't hold, once its input
// ends.
func startTidying(folder Folder) (*tidier, error) {
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
	return &tidier{process, input}, nil
}

// after runs the test's process, and has it tidied up after that.
func (t *tidier) after(test *exec.Cmd) (failure, untidy error) {
	if failure = test.Start(); failure == nil {
		_, failure = fmt.Fprint(t.input, test.Process.Pid)
		failure = errors.Join(failure, test.Wait())
	}
	return failure, errors.Join(t.input.Close(), t.process.Wait())
}

// tidy waits until the test is over, and removes its cgroups, its loop devices, and all
// its files but the logs.
func (f Folder) tidy(ctx context.Context) error {
	// The input ends with the test's first process, in whatever way. With the second,
	// which it names, all others end.
	test, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tidyPatience)
	defer cancel()
	return errors.Join(
		until(ctx, func() error { return hasEnded(string(test)) }),
		until(ctx, f.removeCgroups), until(ctx, f.detachLoops), until(ctx, f.keepLogs),
	)
}

// hasEnded says whether a process, if one is named, isn't there or waits for nothing but
// to be forgotten.
func hasEnded(process string) error {
	if process == "" {
		return nil
	}
	stat, err := os.ReadFile("/proc/" + process + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || strings.Contains(string(stat), ") Z ") {
		return nil
	}
	return fmt.Errorf("process %s is still there", process)
}

// until tries again what can't be done while the last processes end.
func until(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(tidyRetry):
		case <-ctx.Done():
			return fmt.Errorf("tidying up: %w", err)
		}
	}
}

// removeCgroups removes the cgroups of the test's name, of both versions.
func (f Folder) removeCgroups() error {
	var dirs []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + f.Name(), "/sys/fs/cgroup/*/" + f.Name()} {
		roots, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, root := range roots {
			below, err := directories(root)
			if err != nil {
				return err
			}
			dirs = append(dirs, below...)
		}
	}
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("removing cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// directories are a directory and all below it, each before those in it.
func directories(root string) (dirs []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	return dirs, err
}
