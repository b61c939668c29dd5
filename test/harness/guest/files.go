package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Files is what pods' processes do with files, and what a node's files show.
type Files struct{}

// File is a file of a node.
type File struct{ Path, Content string }

// Write writes a file, and makes sure that it is stored.
func (Files) Write(request File, _ *Nothing) error {
	file, err := os.Create(request.Path)
	if err != nil {
		return err
	}
	_, err = file.WriteString(request.Content)
	return errors.Join(err, file.Sync(), file.Close())
}

// Read reads one.
func (Files) Read(path string, content *string) error {
	read, err := os.ReadFile(path)
	*content = string(read)
	return err
}

// List is the names in a directory; none if it isn't there.
func (Files) List(path string, names *[]string) error {
	*names = []string{}
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		*names = append(*names, entry.Name())
	}
	return err
}

// Mounts is what is mounted at a path and below it: "<mount point> <source> <type>".
func (Files) Mounts(path string, mounts *[]string) error {
	table, err := mount.Kernel{}.Table()
	*mounts = []string{}
	for _, point := range table.Below(path) {
		*mounts = append(*mounts, fmt.Sprintf("%s %s %s", point.Path, point.Source, point.FSType))
	}
	return err
}

// Processes is what a node's processes show.
type Processes struct{}

// Stuck is what processes wait for in the kernel, to explain a failure.
func (Processes) Stuck(_ Nothing, stuck *string) error {
	tasks, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, task := range tasks {
		stat, _ := os.ReadFile(filepath.Join(task, "stat"))
		command, _ := os.ReadFile(filepath.Join(task, "cmdline"))
		if !strings.Contains(string(stat), ") D ") && !strings.HasPrefix(string(command), "stowage-mount") {
			continue
		}
		stack, _ := os.ReadFile(filepath.Join(task, "stack"))
		waits, _ := os.ReadFile(filepath.Join(task, "wchan"))
		fmt.Fprintf(&text, "%.40s %.200q waits in %s\n%s", stat, command, waits, stack)
	}
	*stuck = text.String()
	return nil
}

// All is every process, one a line: its number and its parent's, its state, what it waits for
// in the kernel, and its command.
func (Processes) All(_ Nothing, all *string) error {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, process := range processes {
		// One that has ended by now has no files.
		stat, _ := os.ReadFile(filepath.Join(process, "stat"))
		waits, _ := os.ReadFile(filepath.Join(process, "wchan"))
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		name, rest, _ := strings.Cut(string(stat), ") ")
		state, rest, _ := strings.Cut(rest, " ")
		parent, _, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&text, "%s) parent %s, %s in %s: %.200q\n", name, parent, state, waits, command)
	}
	*all = text.String()
	return nil
}
