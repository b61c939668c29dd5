package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Stuck is what the node's processes wait for in the kernel, for people who look
// at a failure.
func (*Node) Stuck(_ Nothing, stuck *string) error {
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
