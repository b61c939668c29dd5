package doctor

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # Is this installation whole?
  kubectl stowage doctor

  # In a script: the command fails if a check does
  kubectl stowage doctor -o json >report.json || echo "Stowage needs attention"`

const long = `Check an installation: versions, rights, drivers, mount propagation, nodes, clocks, backends. The command fails if a check
does. It reads objects of the API alone, and lists what these can't tell; of access reviews the API server stores nothing.`

// New is the command doctor. version is the plug-in's own.
func New(c *cluster.Cluster, version string) *cobra.Command {
	flags := &output.Flags{}
	command := &cobra.Command{
		Use:               "doctor",
		Short:             "Check an installation, as far as objects of the API tell",
		Long:              long,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := flags.Printer(c.Streams.Out)
			if err != nil {
				return err
			}
			o, err := gather(command.Context(), c, version)
			if err != nil {
				return err
			}
			r := report(o)
			if err := show(printer, r); err != nil || r.Failed == 0 {
				return err
			}
			return fmt.Errorf("checks that failed: %d", r.Failed)
		},
	}
	flags.AddTo(command)
	return command
}

// Text is the report as doctor prints it, for an archive.
func Text(ctx context.Context, c *cluster.Cluster, version string, p *output.Printer) error {
	o, err := gather(ctx, c, version)
	if err != nil {
		return err
	}
	return show(p, report(o))
}

// gather reads the objects, and asks the API server its version and what it serves.
func gather(ctx context.Context, c *cluster.Cluster, version string) (*objects, error) {
	o, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	info, err := server.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the API server's version: %w", err)
	}
	o.server, o.client = info.GitVersion, version
	served, err := server.ServerResourcesForGroupVersion(stowagev1alpha1.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("asking which resources are served: %w", err)
	}
	if err == nil {
		for i := range served.APIResources {
			o.served = append(o.served, served.APIResources[i].Name)
		}
	}
	return o, nil
}

var levels = map[Result]output.Level{OK: output.Good, Warning: output.Warning, Failed: output.Bad, Unknown: output.Faint}

// show prints a report.
func show(p *output.Printer, r *Report) error {
	if done, err := p.Structured(r); done {
		return err
	}
	t := &output.Table{Columns: []string{"RESULT", "CHECK", "FINDING"}}
	for _, check := range r.Checks {
		t.Add(output.Cell{Text: string(check.Result), Level: levels[check.Result]}, output.Text(check.Subject), output.Text(check.Says))
		if check.Do != "" && check.Result != OK {
			t.Add(output.Cell{Text: " "}, output.Cell{Text: " "}, output.Text("→ "+check.Do))
		}
	}
	p.Print(t)
	return nil
}
