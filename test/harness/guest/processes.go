package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Processes is what a look at a node's processes tells.
type Processes struct{}

// Count is how many processes there are whose arguments, joined by spaces, begin so.
func (Processes) Count(prefix string, count *int) error {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, process := range processes {
		command, _ := os.ReadFile(process) // one that has ended isn't one of them
		if strings.HasPrefix(strings.ReplaceAll(string(command), "\x00", " "), prefix) {
			*count++
		}
	}
	return err
}

// Stuck is what processes wait for in the kernel, for people who look at a failure.
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
