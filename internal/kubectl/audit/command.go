package audit

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

const examples = `  # Storage without an object, and objects without storage
  kubectl stowage audit

  # All findings, for a script
  kubectl stowage audit -o json`

// New is the command audit.
func New(c *cluster.Cluster) *cobra.Command {
	flags := &output.Flags{}
	command := &cobra.Command{
		Use:               "audit",
		Short:             "Show orphans and lost volumes, as the last audit of each backend found them",
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := flags.Printer(c.Streams.Out)
			if err != nil {
				return err
			}
			r, err := read(command.Context(), c)
			if err != nil {
				return err
			}
			return show(c, printer, r)
		},
	}
	flags.AddTo(command)
	return command
}

// show prints a report.
func show(c *cluster.Cluster, p *output.Printer, r *Report) error {
	if done, err := p.Structured(r); done {
		return err
	}
	now := c.Clock.Now()
	backends := &output.Table{Columns: []string{"BACKEND", "LAST AUDIT", "INTERVAL", "ORPHANS", "LOST", "RETAINED", "REMOVES ORPHANS AFTER"}}
	listed := map[string]int32{}
	for i := range r.Findings {
		listed[r.Findings[i].Backend+r.Findings[i].Kind]++
	}
	for i := range r.Backends {
		b, last := &r.Backends[i], output.Cell{Text: "none yet", Level: output.Warning}
		if b.Time != nil {
			last = output.Text(facts.Age(*b.Time, now) + " ago")
		}
		if b.Overdue {
			last = output.Cell{Text: last.Text + " (overdue)", Level: output.Bad}
		}
		backends.Add(output.Text(b.Name), last, output.Text(b.Interval), output.Text(fmt.Sprint(b.Orphans)), output.Text(fmt.Sprint(b.Lost)), output.Text(fmt.Sprint(b.Retained)), output.Text(b.RemoveOrphansAfter))
	}
	p.Print(backends)
	if len(r.Findings) == 0 {
		p.Line("No orphans and no lost volumes are known.")
	} else {
		fmt.Fprintln(p.Out)
	}
	p.Print(findings(r, c))
	for i := range r.Backends {
		b := &r.Backends[i]
		if b.Orphans > listed[b.Name+"orphan"] || b.Lost > listed[b.Name+"lost"] {
			p.Line("Backend %s has more: its status lists the first 100 of each kind.", b.Name)
		}
	}
	for i := range r.Backends {
		if r.Backends[i].Unaudited != "" {
			p.Line("No audit of backend %s finds %s.", r.Backends[i].Name, r.Backends[i].Unaudited)
		}
	}
	for _, d := range r.Disks {
		p.Line("Disk of backend %s on node %s: %d volumes without a NodeVolume. Nothing removes them; kubectl get nodedisks -o yaml has their ids.", d.Backend, d.Node, d.Count)
	}
	return nil
}

func findings(r *Report, c *cluster.Cluster) *output.Table {
	t := &output.Table{Columns: []string{"KIND", "BACKEND", "ID", "CLAIM", "NODE", "KNOWN FOR", "WHAT TO DO"}}
	for i := range r.Findings {
		f := &r.Findings[i]
		known := ""
		if f.Since != nil {
			known = facts.Age(*f.Since, c.Clock.Now())
		}
		t.Add(output.Cell{Text: f.Kind, Level: output.Bad}, output.Text(f.Backend), output.Text(f.ID), output.Text(f.Claim), output.Text(f.Node), output.Text(known), output.Text(f.Do))
	}
	return t
}
