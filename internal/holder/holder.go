// Package holder finds the processes that keep a folder, a mount or a device in use: by an open
// file, a current folder, a root, a program, or a mount in a namespace of their own.
//
// The node agent asks it about loop devices, `make run` about what it can't unmount. It only reads
// what the kernel shows of processes, and touches no file that they have open: that could hang.
package holder

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Processes is where the kernel shows processes. A program sees those of its own PID namespace.
const Processes = "/proc"

// Devices is where the kernel shows block devices.
const Devices = "/sys/block"

// Thing is what processes may hold.
type Thing struct {
	// Path is held by a process that has it in use, or what is below it. Empty: no path.
	Path string
	// Device is the major:minor of a block device. It is held by a process that has it open by one
	// of its names in /dev, or that has it mounted. Empty: no device.
	Device string
}

// How a process holds something, as a clause after the process.
const (
	Opened  = "has open"
	Current = "is in the folder"
	Root    = "has the root"
	Runs    = "runs"
	Mounted = "has it mounted at"
)

// Holder is a process that holds a Thing.
type Holder struct {
	PID int
	// Name is what the process calls itself.
	Name string
	// How is one of the constants, and At the path of which that is true.
	How, At string

	folder string
}

// String names the process with its command line, and says how it holds the Thing.
func (h Holder) String() string {
	const enough = 100
	line, _ := os.ReadFile(filepath.Join(h.folder, "cmdline"))
	command := string(bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
	if command == "" {
		command = h.Name
	}
	return fmt.Sprintf("process %d (%.*q) %s %s", h.PID, enough, command, h.How, h.At)
}

// Holders yields processes that hold a Thing, each once, but for this one. Of those that share a
// namespace in which the device is mounted, the first is yielded.
func (t Thing) Holders(processes string) iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		seen := map[string]bool{}
		for _, pid := range pids(processes) {
			h := Holder{PID: pid, folder: filepath.Join(processes, strconv.Itoa(pid))}
			folder := h.folder
			if h.How, h.At = t.usedBy(folder); h.How == "" || h.PID == os.Getpid() {
				h.How, h.At = Mounted, t.mountedIn(folder, seen)
			}
			name, _ := os.ReadFile(filepath.Join(folder, "comm"))
			h.Name = string(bytes.TrimSpace(name))
			if h.At != "" && !yield(h) {
				return
			}
		}
	}
}

// pids are those of all processes that have a program, the first one first: kernel threads hold
// nothing, and ended processes neither.
func pids(processes string) (found []int) {
	folders, _ := filepath.Glob(filepath.Join(processes, "[0-9]*")) // the pattern is right
	for _, folder := range folders {
		_, err := os.Readlink(filepath.Join(folder, "exe"))
		if pid, failure := strconv.Atoi(filepath.Base(folder)); failure == nil && !errors.Is(err, os.ErrNotExist) {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return found
}

// usedBy returns how a process uses the Thing without a mount of its own.
func (t Thing) usedBy(folder string) (how, at string) {
	for _, link := range []struct{ name, how string }{{"cwd", Current}, {"root", Root}, {"exe", Runs}} {
		if at, err := os.Readlink(filepath.Join(folder, link.name)); err == nil && t.has(at) {
			return link.how, at
		}
	}
	files, _ := os.ReadDir(filepath.Join(folder, "fd"))
	for _, file := range files {
		if at, err := os.Readlink(filepath.Join(folder, "fd", file.Name())); err == nil && (t.has(at) || t.isDevice(at, filepath.Join(folder, "fd", file.Name()))) {
			return Opened, at
		}
	}
	return "", ""
}

func (t Thing) has(path string) bool {
	return t.Path != "" && (path == t.Path || strings.HasPrefix(path, t.Path+"/"))
}

// isDevice reports whether an open file is the device. Only files of /dev are asked for their
// number: others may be on a server that is away.
func (t Thing) isDevice(path, link string) bool {
	var stat unix.Stat_t
	return t.Device != "" && strings.HasPrefix(path, "/dev/") && unix.Stat(link, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK &&
		t.Device == fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
}

// mountedIn returns where the mount namespace of a process has the device; "" if nowhere, or if the
// namespace was seen.
func (t Thing) mountedIn(folder string, seen map[string]bool) string {
	namespace, err := os.Readlink(filepath.Join(folder, "ns", "mnt"))
	if t.Device == "" || err != nil || seen[namespace] {
		return ""
	}
	seen[namespace] = true
	table, _ := os.ReadFile(filepath.Join(folder, "mountinfo"))
	for line := range strings.Lines(string(table)) {
		// See proc_pid_mountinfo(5): the third field is major:minor, the fifth the mount point.
		if fields := strings.Fields(line); len(fields) > 4 && fields[2] == t.Device {
			return fields[4]
		}
	}
	return ""
}

// Loops yields the loop devices that have a file at Path or below it, and the files.
func (t Thing) Loops(devices string) iter.Seq2[string, string] {
	return func(yield func(device, file string) bool) {
		loops, _ := filepath.Glob(filepath.Join(devices, "loop*", "loop", "backing_file")) // the pattern is right
		for _, loop := range loops {
			content, _ := os.ReadFile(loop)
			file := strings.TrimSuffix(string(bytes.TrimSpace(content)), " (deleted)")
			if t.has(file) && !yield(filepath.Base(filepath.Dir(filepath.Dir(loop))), file) {
				return
			}
		}
	}
}

// Explain adds to an error what holds the Thing, and what to do, in lines. Nil stays nil.
func (t Thing) Explain(err error) error {
	if err == nil {
		return nil
	}
	var lines []string
	for h := range t.Holders(Processes) {
		lines = append(lines, h.String()+": leave it, or end the process")
	}
	for device, file := range t.Loops(Devices) {
		lines = append(lines, fmt.Sprintf("loop device /dev/%[1]s has the file %[2]s: losetup -d /dev/%[1]s", device, file))
	}
	if len(lines) == 0 {
		lines = []string{"nothing that can be seen from here holds it: fuser -vm " + t.Path + " may name what does"}
	}
	return fmt.Errorf("%w\n  %s", err, strings.Join(lines, "\n  "))
}
