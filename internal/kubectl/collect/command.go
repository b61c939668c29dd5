package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # Write stowage-<time>.tar.gz here
  kubectl stowage collect

  # Look at what is in it before you send it
  kubectl stowage collect --file report.tar.gz && tar -tzf report.tar.gz

  # Write it to the standard output
  kubectl stowage collect --file - | tar -xz`

const long = `Write an archive for a bug report: Stowage's objects, all volumes, claims, classes and attachments, nodes, events about
storage, the logs of Stowage's pods, and what doctor says. It has no Secrets and no ConfigMaps; the values of environment
variables, and what looks like a password, token or key, are removed. Names of objects, nodes and servers stay: look at it
before you send it. It has at most 2000 objects of a kind, 1 MiB of each log, and 64 MiB in all.`

// Part is a further file of the archive, such as what another verb prints.
type Part struct {
	Name  string
	Write func(context.Context, *output.Printer) error
}

// New is the command collect. version is the plug-in's own.
func New(c *cluster.Cluster, version string, parts ...Part) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:     "collect",
		Short:   "Write an archive for a bug report, without secrets",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		// --file completes files.
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := c.Config()
			if err != nil {
				return err
			}
			logs, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("connecting to the API server: %w", err)
			}
			all := collection{cluster: c, logs: logs, version: version, parts: parts}
			if file == "-" {
				return all.write(command.Context(), c.Streams.Out)
			}
			if file == "" {
				file = "stowage-" + c.Clock.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
			}
			return all.writeFile(command.Context(), file)
		},
	}
	command.Flags().StringVar(&file, "file", "", "The file to write, which must not exist; - is the standard output. Default: stowage-<time>.tar.gz.")
	return command
}

// collection is what an archive is made of.
type collection struct {
	cluster *cluster.Cluster
	logs    kubernetes.Interface
	version string
	parts   []Part
}

// writeFile writes the archive to a new file, which only its owner can read. If that fails, no
// file is left.
func (a *collection) writeFile(ctx context.Context, name string) error {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("creating the archive: %w: choose another name with --file", err)
	}
	if err := errors.Join(a.write(ctx, out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	fmt.Fprintf(a.cluster.Streams.Out, "Wrote %s. Look at what is in it before you send it.\n", output.Escape(name))
	return nil
}

// write writes the archive. A part that fails has the error in its place.
func (a *collection) write(ctx context.Context, out io.Writer) error {
	to := newArchive(out, a.cluster.Clock.Now())
	notes, streams := &bytes.Buffer{}, a.cluster.Streams
	a.cluster.Streams.ErrOut = io.MultiWriter(notes, streams.ErrOut)
	defer func() { a.cluster.Streams = streams }()
	for _, part := range a.parts {
		text := &bytes.Buffer{}
		if err := part.Write(ctx, &output.Printer{Out: text, Format: output.FormatWide}); err != nil {
			fmt.Fprintf(text, "Error: %v\n", err)
		}
		to.add(part.Name+".txt", []byte(redactText(text.String())))
	}
	pods, err := objects(ctx, a.cluster, to)
	if err == nil {
		err = events(ctx, a.cluster, to, pods)
	}
	if err != nil {
		return err
	}
	logs(ctx, a.logs, to, pods)
	about := fmt.Sprintf("kubectl-stowage %s, %s\n\n%s\n%s\n", a.version, a.cluster.Clock.Now().UTC(), notes, strings.Join(to.left, "\n"))
	to.add("about.txt", []byte(about))
	return to.close()
}
