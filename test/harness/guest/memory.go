package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const groups = "/sys/fs/cgroup"

// Confine makes a control group with a limit of memory, as a kubelet makes that of a
// container: one process too many ends them all. It returns the group's folder, which is ""
// without a limit.
func Confine(name string, memory int64) (string, error) {
	if memory == 0 {
		return "", nil
	}
	group := filepath.Join(groups, name)
	if err := unix.Mount("cgroup2", groups, "cgroup2", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return "", fmt.Errorf("mounting cgroups: %w", err)
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return "", err
	}
	for _, setting := range [][2]string{
		{groups + "/cgroup.subtree_control", "+memory"},
		{group + "/memory.max", strconv.FormatInt(memory, 10)},
		{group + "/memory.oom.group", "1"},
	} {
		if err := os.WriteFile(setting[0], []byte(setting[1]), 0o644); err != nil {
			return "", err
		}
	}
	return group, nil
}

// readNumber reads a number from a file, in the line that a name begins, if there is one.
func readNumber(path, name string) (int64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 1 && name == "" || len(fields) == 2 && fields[0] == name {
			return strconv.ParseInt(fields[len(fields)-1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}
