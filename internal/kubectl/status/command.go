package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # Backends, nodes and their room, and what waits
  kubectl stowage status

  # With each claim, where its volume is attached, and which pods have it mounted
  kubectl stowage status -o wide

  # All of that, drawn again every two seconds, until Ctrl-C
  kubectl stowage status --watch`

// leastInterval keeps --watch from being a load for the API server.
const leastInterval = time.Second

// New is the command status.
func New(c *cluster.Cluster) *cobra.Command {
	flags, watch, interval := &output.Flags{}, false, 2*time.Second
	command := &cobra.Command{
		Use:               "status",
		Short:             "Show backends, nodes and their room, and what waits",
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := flags.Printer(c.Streams.Out)
			switch {
			case err != nil:
				return err
			case interval < leastInterval:
				return fmt.Errorf("--interval is at least %s", leastInterval)
			case watch && (printer.Format == output.FormatJSON || printer.Format == output.FormatYAML):
				return errors.New("--watch prints text: leave -o out, or use -o wide")
			case watch:
				return watching(command.Context(), c, printer, interval)
			default:
				return once(command.Context(), c, printer, false)
			}
		},
	}
	flags.AddTo(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Draw it again and again, with all claims, until Ctrl-C.")
	command.Flags().DurationVar(&interval, "interval", interval, "The time between two drawings of --watch.")
	return command
}

// once reads and prints.
func once(ctx context.Context, c *cluster.Cluster, p *output.Printer, withClaims bool) error {
	objects, err := read(ctx, c)
	if err != nil {
		return err
	}
	return show(p, report(objects, c.Clock.Now()), withClaims)
}

// Text is what status prints, for an archive.
func Text(ctx context.Context, c *cluster.Cluster, p *output.Printer) error {
	return once(ctx, c, p, false)
}
