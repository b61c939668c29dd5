package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	utilexec "k8s.io/utils/exec"
)

// ErrChecking says that too many file systems are being checked for the memory of this node's
// agent. Try again later.
var ErrChecking = errors.New("other file systems are being checked on this node, and memory for more is missing until one of these checks ends")

// What checks may take of the memory that this process and its children have together. What
// lies in a file system says how much its check needs, and a container that exceeds its
// memory is killed as a whole. Most checks need next to nothing; those that need more run
// again, one at a time.
const (
	smallShare, smallChecks = 32, 8
	largeShare              = 2
	// threadStack is what the stack of a thread counts, used or not. e2fsck has as many
	// threads as the node has processors: at 8 MiB each, none would be left for its work.
	threadStack = 512 << 10
)

// checks bounds the memory of checks. It is safe for several goroutines.
type checks struct {
	// limit is how many bytes of memory there are; 0: as many as the machine has.
	limit        func() int64
	small, large chan struct{}
}

func newChecks(limit func() int64) *checks {
	return &checks{limit, make(chan struct{}, smallChecks), make(chan struct{}, 1)}
}

// run runs a program that checks a file system, and returns its output.
func (c *checks) run(ctx context.Context, run programs, name string, arguments ...string) ([]byte, error) {
	limit := c.limit()
	if limit == 0 {
		return run.Command(name, arguments...).CombinedOutput()
	}
	output, err := within(run, c.small, limit/smallShare, name, arguments)
	if !wantsMemory(err) || ctx.Err() != nil {
		return output, err
	}
	output, err = within(run, c.large, limit/largeShare, name, arguments)
	if wantsMemory(err) && ctx.Err() == nil {
		err = fmt.Errorf("%w (it had %d MiB of memory, half of what the node agent may take: if that is too little, "+
			"raise the memory limit of the node agent's DaemonSet, or run %s on it by hand)", err, limit/largeShare/mebibyte, name)
	}
	return output, err
}

// within runs a program with no more memory than that, if a slot is free.
func within(run programs, slots chan struct{}, bytes int64, name string, arguments []string) ([]byte, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		return nil, ErrChecking
	}
	if err := run.check("prlimit"); err != nil {
		return nil, err
	}
	limited := append([]string{"--data=" + strconv.FormatInt(bytes, 10), "--stack=" + strconv.Itoa(threadStack), name}, arguments...)
	return run.Command("prlimit", limited...).CombinedOutput()
}

// wantsMemory reports whether a check may have ended for lack of memory: a signal ended it, or
// it could do nothing. A verdict on the file system is an answer.
func wantsMemory(err error) bool {
	var exit utilexec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	return !exit.Exited() || exit.ExitStatus()&fsckUnable != 0
}

// noLimit is above the kernel's number for "no limit".
const noLimit = 1 << 60

// memoryLimit is how much memory the control groups of this process allow: see the kernel's
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. It is 0 where they allow
// all that there is, or don't say.
func memoryLimit() int64 { return memoryLimitIn("/proc/self/cgroup", "/sys/fs/cgroup") }

func memoryLimitIn(groups, root string) int64 {
	content, err := os.ReadFile(groups)
	if err != nil {
		return 0
	}
	least := int64(noLimit)
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "":
			least = min(least, leastLimit(root, fields[2], "memory.max"))
		case fields[1] == "memory":
			least = min(least, leastLimit(filepath.Join(root, "memory"), fields[2], "memory.limit_in_bytes"))
		}
	}
	if least == noLimit {
		return 0
	}
	return least
}

// leastLimit is the least limit of a group and those that it is in. A container may see no
// more of them than its own.
func leastLimit(root, group, file string) int64 {
	least := int64(noLimit)
	for at := filepath.Clean("/" + group); ; at = filepath.Dir(at) {
		content, err := os.ReadFile(filepath.Join(root, at, file))
		if limit, invalid := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64); err == nil && invalid == nil {
			least = min(least, limit)
		}
		if at == "/" {
			return least
		}
	}
}
