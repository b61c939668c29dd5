package explain

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # Why does this pod not start?
  kubectl stowage explain pod db-0 -n shop

  # Where are the bytes of this claim?
  kubectl stowage explain pvc data -n shop

  # The same as JSON, for a script
  kubectl stowage explain pv pvc-4711 -o json`

// New is the command explain.
func New(c *cluster.Cluster) *cobra.Command {
	flags := &output.Flags{}
	command := &cobra.Command{
		Use:     "explain (pod|pvc|pv) NAME",
		Short:   "Show the chain from a pod to the bytes on a disk, the first thing that is wrong, and what to do",
		Example: examples,
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, arguments []string, typed string) ([]string, cobra.ShellCompDirective) {
			return complete(c, arguments, typed)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			printer, err := flags.Printer(c.Streams.Out)
			if err != nil {
				return err
			}
			report, err := explain(command.Context(), c, arguments[0], arguments[1])
			if err != nil {
				return err
			}
			return show(printer, report)
		},
	}
	flags.AddTo(command)
	return command
}

// kindOf is the kind behind one of the names that kubectl has for it, or "".
func kindOf(resource string) string {
	switch strings.ToLower(resource) {
	case "pod", "pods", "po":
		return "Pod"
	case "pvc", "pvcs", "claim", "persistentvolumeclaim", "persistentvolumeclaims":
		return "PersistentVolumeClaim"
	case "pv", "pvs", "volume", "persistentvolume", "persistentvolumes":
		return "PersistentVolume"
	default:
		return ""
	}
}

func explain(ctx context.Context, c *cluster.Cluster, resource, name string) (*Report, error) {
	kind := kindOf(resource)
	if kind == "" {
		return nil, fmt.Errorf("explain knows pod, pvc and pv, not %q", resource)
	}
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	var links []Link
	var absent bool
	l := &loader{cluster: c}
	switch key := (client.ObjectKey{Namespace: namespace, Name: name}); kind {
	case "Pod":
		found := l.pod(ctx, key)
		links, absent = ofPod(found, namespace), found.pod.presence == cluster.Absent
	case "PersistentVolumeClaim":
		found := l.claim(ctx, key, "")
		links, absent = ofClaim(&found, namespace), found.claim.presence == cluster.Absent
	default:
		found := l.volumeObject(ctx, name)
		links, absent = ofVolumeObject(&found), found.pv.presence == cluster.Absent
	}
	switch {
	case l.err != nil:
		return nil, l.err
	case absent && kind == "PersistentVolume":
		return nil, fmt.Errorf("there is no PersistentVolume %q: kubectl stowage list has the names", name)
	case absent:
		return nil, fmt.Errorf("there is no %s %q in namespace %q: choose another namespace with -n", kind, name, namespace)
	}
	return judge(links), nil
}

// complete completes a kind, then the name of an object.
func complete(c *cluster.Cluster, arguments []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(arguments) {
	case 0:
		return []string{"pod", "pvc", "pv"}, cobra.ShellCompDirectiveNoFileComp
	case 1:
		kind := kindOf(arguments[0])
		if kind == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.Complete(schema.GroupVersionKind{Version: corev1.SchemeGroupVersion.Version, Kind: kind + "List"}, kind != "PersistentVolume", typed)
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
