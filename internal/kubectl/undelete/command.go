package undelete

import (
	"errors"
	"fmt"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # Which volumes can come back, and until when
  kubectl stowage list --retained

  # Give the data back to the claim that had it
  kubectl stowage undelete pvc-4711

  # Give it to another claim, which is created
  kubectl stowage undelete pvc-4711 --to shop/data-restored

  # Give the snapshot of a deleted VolumeSnapshot back
  kubectl stowage undelete volumesnapshotcontent/undeletable-4711

  # Ask the API server whether that would work, without a change
  kubectl stowage undelete pvc-4711 --dry-run=server`

const long = `Give the data of a volume whose claim was deleted back, within the undelete window of its StorageBackend
(spec.deletion.retainFor). The volume is kept and reserved for the claim in one write; the claim is created; once both are
bound, the volume gets its reclaim policy back. The same command continues after an interruption.

A Released volume of another driver, with the policy Retain, is given back in the same way.

The snapshot of a deleted VolumeSnapshot is given back within the window of spec.deletion.retainSnapshotsFor, by the name of the
VolumeSnapshotContent that keeps it: a VolumeSnapshot is created under the name and in the namespace that it had.`

// New is the command undelete.
func New(c *cluster.Cluster) *cobra.Command {
	flags, to, dryRun, timeout := &output.Flags{}, "", "none", time.Minute
	command := &cobra.Command{
		Use:     "undelete PV | volumesnapshotcontent/NAME",
		Short:   "Give the data of a deleted claim back, or a deleted VolumeSnapshot",
		Long:    long,
		Example: examples,
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, arguments []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(arguments) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(c, typed)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			printer, err := flags.Printer(c.Streams.Out)
			if err != nil {
				return err
			}
			u := &undeletion{timeout: timeout}
			if u.dryRun, err = parseDryRun(dryRun); err != nil {
				return err
			}
			if u.to, err = parseTarget(to); err != nil {
				return err
			}
			if u.client, err = c.Client(); err != nil {
				return err
			}
			name, isSnapshot, err := parseObject(arguments[0])
			if err != nil {
				return err
			}
			if isSnapshot {
				result, err := u.runSnapshot(command.Context(), name)
				if err != nil {
					return err
				}
				return showSnapshot(printer, result)
			}
			result, err := u.run(command.Context(), name)
			if err != nil {
				return err
			}
			return show(printer, result)
		},
	}
	flags.AddTo(command)
	command.Flags().StringVar(&to, "to", "", "The claim that gets the data, as NAMESPACE/NAME. Default: the claim that had it.")
	command.Flags().StringVar(&dryRun, "dry-run", dryRun, "none, or server: the API server checks all and changes nothing.")
	command.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait until the claim is bound, or the VolumeSnapshot ready.")
	_ = command.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// complete returns the names of PersistentVolumes and, after their kind, those of VolumeSnapshotContents.
func complete(c *cluster.Cluster, typed string) ([]string, cobra.ShellCompDirective) {
	const kind = "volumesnapshotcontent/"
	if name, isSnapshot := strings.CutPrefix(typed, kind); isSnapshot {
		names, then := c.Complete(snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotContentList"), false, name)
		for i := range names {
			names[i] = kind + names[i]
		}
		return names, then
	}
	names, then := c.Complete(corev1.SchemeGroupVersion.WithKind("PersistentVolumeList"), false, typed)
	if strings.HasPrefix(kind, typed) {
		names, then = append(names, kind), then|cobra.ShellCompDirectiveNoSpace
	}
	return names, then
}

func parseDryRun(value string) (bool, error) {
	switch value {
	case "none", "server":
		return value == "server", nil
	default:
		return false, fmt.Errorf("--dry-run is none or server, not %q: only the API server knows whether it would work", value)
	}
}

// parseObject reads what comes back: the name of a PersistentVolume, or a kind and a name as kubectl takes them.
func parseObject(value string) (name string, isSnapshot bool, err error) {
	kind, name, both := strings.Cut(value, "/")
	if !both {
		return value, false, nil
	}
	switch strings.ToLower(kind) {
	case "pv", "persistentvolume", "persistentvolumes":
	case "vsc", "volumesnapshotcontent", "volumesnapshotcontents":
		isSnapshot = true
	default:
		return "", false, fmt.Errorf("%q can't come back: name a PersistentVolume, or volumesnapshotcontent/NAME", value)
	}
	if name == "" || strings.Contains(name, "/") {
		return "", false, fmt.Errorf("%q has no name: kubectl stowage list --retained has the names", value)
	}
	return name, isSnapshot, nil
}

// parseTarget reads the value of --to; nil for none.
func parseTarget(value string) (*client.ObjectKey, error) {
	if value == "" {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(value, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, errors.New("--to is a claim as NAMESPACE/NAME, such as shop/data")
	}
	return &client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// show prints what was done.
func show(p *output.Printer, r *Result) error {
	if done, err := p.Structured(r); done {
		return err
	}
	if r.DryRun {
		p.Line("Volume %s would be given to claim %s, and keep its reclaim policy %s (server dry run: nothing was changed).", r.Volume, r.Claim, r.Policy)
		return nil
	}
	p.Line("Volume %s is bound to claim %s, with its data. Its reclaim policy is %s, as before.", r.Volume, r.Claim, r.Policy)
	return nil
}

func showSnapshot(p *output.Printer, r *SnapshotResult) error {
	if done, err := p.Structured(r); done {
		return err
	}
	if r.DryRun {
		p.Line("VolumeSnapshot %s would be created, and have its snapshot again (server dry run: nothing was changed).", r.VolumeSnapshot)
		return nil
	}
	p.Line("VolumeSnapshot %s has its snapshot again, and is ready.", r.VolumeSnapshot)
	return nil
}
