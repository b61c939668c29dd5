package list

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # All volumes of Stowage
  kubectl stowage list

  # Those whose claim is gone, and until when their data is kept; snapshots, too
  kubectl stowage list --retained

  # Those on one node, with driver, class, policy and handle
  kubectl stowage list --node node-1 -o wide

  # Those of claims in one namespace, also of other drivers
  kubectl stowage list --all -n shop`

// New is the command list.
func New(c *cluster.Cluster) *cobra.Command {
	flags, s := &output.Flags{}, selection{}
	command := &cobra.Command{
		Use:               "list",
		Short:             "List volumes: backend, node, size, use, health, and until when deleted data is kept",
		Long:              "List volumes: backend, node, size, use, health, and until when deleted data is kept.\n\n-n limits the list to claims of one namespace.",
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := flags.Printer(c.Streams.Out)
			if err != nil {
				return err
			}
			if command.Flags().Changed("namespace") {
				s.namespace = *c.Flags.Namespace
			}
			found, err := volumes(command.Context(), c, s)
			if err != nil {
				return err
			}
			var snapshots []Snapshot
			if s.retained {
				if snapshots, err = retainedSnapshots(command.Context(), c, s); err != nil {
					return err
				}
			}
			return show(c, printer, found, snapshots)
		},
	}
	flags.AddTo(command)
	command.Flags().StringVar(&s.backend, "backend", "", "Only volumes of this StorageBackend.")
	command.Flags().StringVar(&s.node, "node", "", "Only volumes that one node can use, this one.")
	command.Flags().BoolVar(&s.retained, "retained", false, "Only volumes without a claim whose data is kept, and snapshots in their undelete windows.")
	command.Flags().BoolVar(&s.all, "all", false, "Also volumes of drivers that Stowage does not serve.")
	c.CompleteFlag(command, "backend", stowagev1alpha1.GroupVersion.WithKind("StorageBackendList"))
	c.CompleteFlag(command, "node", corev1.SchemeGroupVersion.WithKind("NodeList"))
	return command
}

// show prints volumes, and snapshots if those were asked for.
func show(c *cluster.Cluster, p *output.Printer, found []Volume, snapshots []Snapshot) error {
	all := map[string]any{"volumes": found}
	if snapshots != nil {
		all["snapshots"] = snapshots
	}
	if done, err := p.Structured(all); done {
		return err
	}
	if len(found) == 0 {
		c.Note("no volumes were found; --all includes those of drivers that Stowage does not serve")
	} else {
		showVolumes(p, found)
	}
	if len(snapshots) > 0 {
		showSnapshots(p, snapshots, len(found) == 0)
	}
	return nil
}

func showVolumes(p *output.Printer, found []Volume) {
	table := &output.Table{Columns: []string{"NAME", "CLAIM", "BACKEND", "NODE", "SIZE", "USED", "PHASE", "HEALTH", "RETAINED UNTIL", "DRIVER", "CLASS", "POLICY", "HANDLE", "PROBLEM"}, Wide: 9}
	for _, v := range found {
		health := output.Cell{Text: v.Health}
		switch {
		case v.Problem != "":
			health.Level = output.Bad
		case v.Health == "Healthy":
			health.Level = output.Good
		}
		retained := output.Cell{Text: v.RetainedUntil, Level: output.Warning}
		table.Add(output.Text(v.Name), output.Text(v.Claim), output.Text(v.Backend), output.Text(v.Node), output.Text(v.Size),
			output.Text(v.Used), output.Text(v.Phase), health, retained,
			output.Text(v.Driver), output.Text(v.Class), output.Text(v.Policy), output.Text(v.Handle), output.Text(v.Problem))
	}
	p.Print(table)
}
