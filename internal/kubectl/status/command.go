package status

import (
	"bytes"
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

  # The same, drawn again every two seconds, until Ctrl-C
  kubectl stowage status --watch

  # With each claim: where its volume is attached, which pods have it mounted
  kubectl stowage status -o wide`

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
				return once(command.Context(), c, printer)
			}
		},
	}
	flags.AddTo(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Draw it again and again, until Ctrl-C.")
	command.Flags().DurationVar(&interval, "interval", interval, "The time between two drawings of --watch.")
	return command
}

// once reads and prints.
func once(ctx context.Context, c *cluster.Cluster, p *output.Printer) error {
	objects, err := read(ctx, c)
	if err != nil {
		return err
	}
	return show(p, report(objects, c.Clock.Now()))
}

// watching draws until the context ends. A read that fails is shown, and tried again.
func watching(ctx context.Context, c *cluster.Cluster, p *output.Printer, interval time.Duration) error {
	out, terminal := p.Out, output.IsTerminal(p.Out)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		frame := &bytes.Buffer{}
		p.Out = frame
		p.Line("%s, every %s, until Ctrl-C", c.Clock.Now().Format(time.TimeOnly), interval)
		p.Line("")
		if err := once(ctx, c, p); err != nil && ctx.Err() == nil {
			p.Line("Error: %s", err)
		}
		if _, err := out.Write(drawn(frame.Bytes(), terminal)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// drawn is a frame that covers the one before, on a terminal. It begins at the top left corner, and
// clears the rest of each line and of the screen, which doesn't flicker.
func drawn(frame []byte, terminal bool) []byte {
	if !terminal {
		return append(frame, '\n')
	}
	lines := bytes.ReplaceAll(frame, []byte("\n"), []byte("\x1b[K\n"))
	return append(append([]byte("\x1b[H"), lines...), "\x1b[J"...)
}

// Text is what status prints, for an archive.
func Text(ctx context.Context, c *cluster.Cluster, p *output.Printer) error { return once(ctx, c, p) }
