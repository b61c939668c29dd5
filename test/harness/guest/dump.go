package guest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const mostOfLog = 6000

// noise are parts of lines that logs have many of and that explain nothing: calls that
// tests themselves repeat, and the start of controllers.
var noise = []string{`"zoneOperations.list"`, `"instances.list"`, "Starting EventSource", "Starting Controller", "Starting workers"}

// Dump writes what explains a failure: objects, what nodes have mounted and what their
// processes wait for, and the ends of logs. Stowage and nodes may be nil.
func Dump(ctx context.Context, w io.Writer, folder Folder, stowage *Stowage, nodes ...*Node) {
	logs, _ := filepath.Glob(filepath.Join(folder.Logs(), "*.log")) // the pattern is well-formed
	if stowage != nil {
		stowage.dumpObjects(ctx, w)
		logs = append(logs, stowage.Manager.LogFile)
	}
	for _, node := range nodes {
		if node != nil {
			node.dump(ctx, w)
		}
	}
	for _, log := range logs {
		content, _ := os.ReadFile(log) // one that can't be read is shown empty
		DumpText(w, "the end of "+filepath.Base(log), endOf(string(content)))
	}
}

// DumpText writes a text below a heading.
func DumpText(w io.Writer, heading, text string) { fmt.Fprintf(w, "\n--- %s\n%s\n", heading, text) }

func (n *Node) dump(ctx context.Context, w io.Writer) {
	var mounts []string
	if err := n.Call(ctx, "Files.Mounts", AgentRoot, &mounts); err != nil {
		DumpText(w, n.Name, err.Error())
		return
	}
	DumpText(w, "mounts of "+n.Name, strings.Join(mounts, "\n"))
	var stuck string
	if n.Call(ctx, "Processes.Stuck", Nothing{}, &stuck) == nil && stuck != "" {
		DumpText(w, "what processes of "+n.Name+" wait for", stuck)
	}
}

func endOf(log string) string {
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(log)), func(line string) bool {
		return slices.ContainsFunc(noise, func(part string) bool { return strings.Contains(line, part) })
	})
	text := strings.Join(lines, "")
	return text[max(0, len(text)-mostOfLog):]
}

// dumpObjects writes objects as JSON, one a line, and events as kubectl prints them.
func (s *Stowage) dumpObjects(ctx context.Context, w io.Writer) {
	const oneALine = `--output=jsonpath={range .items[*]}{@}{"\n"}{end}`
	for _, kind := range []string{"storagebackends", "pvc", "pv", "volumeattachments", "nodes", "pods"} {
		s.dumpKind(ctx, w, kind, "--all-namespaces", oneALine)
	}
	s.dumpKind(ctx, w, "events", "--all-namespaces", "--sort-by=.lastTimestamp")
}

func (s *Stowage) dumpKind(ctx context.Context, w io.Writer, kind string, arguments ...string) {
	kubectl, err := s.Kubectl(ctx, append([]string{"get", kind}, arguments...)...)
	if err != nil {
		DumpText(w, kind, err.Error())
		return
	}
	output, _ := kubectl.CombinedOutput() // an error is in the text
	DumpText(w, kind, string(output))
}
