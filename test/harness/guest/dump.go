package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// mostOfLog is how much of each log a dump has.
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
	if err := n.Ask(ctx, "Files.Mounts", AgentRoot, &mounts); err != nil {
		DumpText(w, n.Name, err.Error())
		return
	}
	DumpText(w, "mounts of "+n.Name, strings.Join(mounts, "\n"))
	var stuck string
	if n.Ask(ctx, "Processes.Stuck", Nothing{}, &stuck) == nil && stuck != "" {
		DumpText(w, "what processes of "+n.Name+" wait for", stuck)
	}
}

// endOf is the end of a log, without noise.
func endOf(log string) string {
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(log)), func(line string) bool {
		return slices.ContainsFunc(noise, func(part string) bool { return strings.Contains(line, part) })
	})
	text := strings.Join(lines, "")
	return text[max(0, len(text)-mostOfLog):]
}

func (s *Stowage) dumpObjects(ctx context.Context, w io.Writer) {
	for _, list := range []client.ObjectList{
		&stowagev1alpha1.StorageBackendList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{},
		&storagev1.VolumeAttachmentList{}, &corev1.NodeList{}, &corev1.PodList{}, &corev1.EventList{},
	} {
		if err := s.Client.List(ctx, list); err != nil {
			DumpText(w, "listing objects", err.Error())
			continue
		}
		var text strings.Builder
		_ = meta.EachListItem(list, func(item runtime.Object) error { // the lists are of objects
			fmt.Fprintln(&text, described(item.(client.Object)))
			return nil
		})
		DumpText(w, fmt.Sprintf("%T", list), text.String())
	}
}

// described is an object on one line, without what explains nothing.
func described(object client.Object) string {
	if event, is := object.(*corev1.Event); is {
		return fmt.Sprintf("%s %s: %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
	}
	object.SetManagedFields(nil)
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
