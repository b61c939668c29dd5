package loopdev

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// procFolder is where the kernel shows processes. The agent sees those of its own PID namespace.
const procFolder = "/proc"

// holder is a device that processes may keep.
type holder struct {
	// path is the device's, and number its major:minor.
	path, number string
}

// explain names a process that keeps the device, and how to release it. It reads no more than it
// needs for one: the next attempt names the next.
func (h holder) explain(proc string) string {
	folders, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	seen := map[string]bool{}
	for _, folder := range folders {
		process := fmt.Sprintf("process %s (%q)", filepath.Base(folder), nameOf(folder))
		if filepath.Base(folder) != strconv.Itoa(os.Getpid()) && h.isOpenIn(folder) {
			return process + " has it open: end the process, and the detach is tried again"
		}
		namespace, err := os.Readlink(filepath.Join(folder, "ns", "mnt"))
		if err != nil || seen[namespace] {
			continue
		}
		seen[namespace] = true
		if at := h.mountedIn(folder); at != "" {
			return fmt.Sprintf("%s has it mounted at %q: unmount it there (nsenter -m -t %s umount …), or end the process, and the detach is tried again",
				process, at, filepath.Base(folder))
		}
	}
	return fmt.Sprintf("no process that the agent sees has it: 'fuser -v %s' on the node names what has it open; end that, and the detach is tried again", h.path)
}

// nameOf returns what a process calls itself.
func nameOf(folder string) string {
	name, _ := os.ReadFile(filepath.Join(folder, "comm"))
	return string(bytes.TrimSpace(name))
}

func (h holder) isOpenIn(folder string) bool {
	files, _ := os.ReadDir(filepath.Join(folder, "fd"))
	for _, file := range files {
		if at, err := os.Readlink(filepath.Join(folder, "fd", file.Name())); err == nil && at == h.path {
			return true
		}
	}
	return false
}

// mountedIn returns where the mount namespace of a process has the device; "" if nowhere.
func (h holder) mountedIn(folder string) string {
	table, _ := os.ReadFile(filepath.Join(folder, "mountinfo"))
	for line := range strings.Lines(string(table)) {
		// See proc_pid_mountinfo(5): the third field is major:minor, the fifth the mount point.
		if fields := strings.Fields(line); len(fields) > 4 && fields[2] == h.number {
			return fields[4]
		}
	}
	return ""
}
