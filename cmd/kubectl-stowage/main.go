// Command kubectl-stowage is a kubectl plug-in, `kubectl stowage`: it explains, lists and
// checks what Stowage does in a cluster, and brings deleted volumes back.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stowage-dev/stowage/internal/kubectl/audit"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/collect"
	"github.com/stowage-dev/stowage/internal/kubectl/doctor"
	"github.com/stowage-dev/stowage/internal/kubectl/explain"
	"github.com/stowage-dev/stowage/internal/kubectl/list"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
	"github.com/stowage-dev/stowage/internal/kubectl/status"
	"github.com/stowage-dev/stowage/internal/kubectl/undelete"
	"github.com/stowage-dev/stowage/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := root(cluster.New(streams)).ExecuteContext(ctx)
	stop()
	if utilnet.IsConnectionRefused(err) {
		err = fmt.Errorf("%w: check that the cluster runs, and --context, --kubeconfig and $KUBECONFIG", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, output.Escape("Error: "+err.Error()))
		os.Exit(1)
	}
}

// root is the command with its verbs.
func root(c *cluster.Cluster) *cobra.Command {
	command := &cobra.Command{
		Use:   "kubectl-stowage",
		Short: "Explain, list and check the storage that Stowage runs, and bring deleted volumes back",
		Long: "Explain, list and check the storage that Stowage runs, and bring deleted volumes back.\n\n" +
			"All verbs only read, except undelete. They work with both scopes of the manager.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl stowage"},
		Version:       program.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetIn(c.Streams.In)
	command.SetOut(c.Streams.Out)
	command.SetErr(c.Streams.ErrOut)
	c.AddFlags(command.PersistentFlags())
	collected := []collect.Part{
		{Name: "status", Write: func(ctx context.Context, p *output.Printer) error { return status.Text(ctx, c, p) }},
		{Name: "doctor", Write: func(ctx context.Context, p *output.Printer) error { return doctor.Text(ctx, c, program.Version(), p) }},
	}
	command.AddCommand(explain.New(c), status.New(c), list.New(c), undelete.New(c), audit.New(c), doctor.New(c, program.Version()), collect.New(c, program.Version(), collected...))
	return command
}
