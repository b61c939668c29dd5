package status

import (
	"fmt"
	"strings"

	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

// mostRows bounds the rows of a table for people; mostWhy the text of a reason, but for wide.
const (
	mostRows = 100
	mostWhy  = 160
)

// show prints a report; for people, with claims if they are asked for. Claims are last: what a
// terminal has no lines for is cut there.
func show(p *output.Printer, r *Report, withClaims bool) error {
	if done, err := p.Structured(r); done {
		return err
	}
	p.Title("Backends", true)
	if len(r.Backends) == 0 {
		p.Line("There is no StorageBackend: create one, such as config/samples/local_backend.yaml.")
	}
	p.Print(backendTable(p, r.Backends))
	p.Title("Nodes", false)
	p.Print(nodeTable(p, r.Nodes))
	p.Title("Volumes", false)
	p.Line("%s", r.Volumes)
	p.Title("Waiting", false)
	if len(r.Waiting) == 0 {
		p.Line("Nothing waits.")
	}
	p.Print(waitingTable(p, r.Waiting))
	if withClaims || p.Format == output.FormatWide {
		p.Title("Claims, and volumes without one", false)
		if len(r.Claims) == 0 {
			p.Line("There are none.")
		}
		p.Print(claimTable(p, r.Claims))
	}
	return nil
}

func backendTable(p *output.Printer, backends []Backend) *output.Table {
	t := &output.Table{Columns: []string{"NAME", "TYPE", "READY", "CAPACITY", "USED", "VOLUMES", "ORPHANS", "LOST", "WHY"}}
	for _, b := range backends {
		ready := output.Cell{Text: b.Ready, Level: output.Bad}
		if b.Why == "" {
			ready.Level = output.Good
		}
		t.Add(output.Text(b.Name), output.Text(b.Type), ready, output.Text(b.Total), output.Text(b.Used), output.Text(number(b.Volumes)),
			bad(number(b.Orphans)), bad(number(b.Lost)), why(p, b.Why))
	}
	return t
}

func nodeTable(p *output.Printer, nodes []Node) *output.Table {
	t := &output.Table{Columns: []string{"NAME", "READY", "BACKEND", "DISK", "AVAILABLE", "TOTAL", "ATTACHED", "WHY"}}
	for _, n := range cut(p, nodes) {
		ready, disk := output.Cell{Text: "True", Level: output.Good}, output.Cell{Text: n.Disk, Level: output.Bad}
		if !n.Ready {
			ready = output.Cell{Text: "False", Level: output.Bad}
		}
		if n.Disk == "Ready" {
			disk.Level = output.Good
		}
		t.Add(output.Text(n.Name), ready, output.Text(n.Backend), disk, output.Text(n.Available), output.Text(n.Total), output.Text(fmt.Sprint(n.Attached)), why(p, n.Why))
	}
	return t
}

func claimTable(p *output.Printer, claims []Claim) *output.Table {
	t := &output.Table{Columns: []string{"NAME", "PHASE", "VOLUME", "SIZE", "ATTACHED TO", "PODS"}}
	for _, c := range cut(p, claims) {
		phase := c.Phase
		switch c.RetainedUntil {
		case "":
		case "kept":
			phase += " (data kept)"
		default:
			phase += " (data kept until " + c.RetainedUntil + ")"
		}
		t.Add(output.Text(c.Name), output.Text(phase), output.Text(c.Volume), output.Text(c.Size), output.Text(strings.Join(c.Attached, ", ")), output.Text(strings.Join(c.Pods, ", ")))
	}
	return t
}

func waitingTable(p *output.Printer, waiting []Waiting) *output.Table {
	t := &output.Table{Columns: []string{"KIND", "NAME", "FOR", "WHY"}}
	for _, w := range cut(p, waiting) {
		t.Add(output.Text(w.Kind), output.Text(w.Name), output.Text(w.For), why(p, w.Why))
	}
	return t
}

// cut is the first rows; a line says how many are left out.
func cut[T any](p *output.Printer, rows []T) []T {
	if len(rows) <= mostRows {
		return rows
	}
	p.Line("The first %d of %d; -o json has all.", mostRows, len(rows))
	return rows[:mostRows]
}

func number(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// bad is a count that should be 0.
func bad(text string) output.Cell {
	if text == "" || text == "0" {
		return output.Text(text)
	}
	return output.Cell{Text: text, Level: output.Bad}
}

func why(p *output.Printer, text string) output.Cell {
	if p.Format == output.FormatWide {
		return output.Text(text)
	}
	return output.Text(output.Short(text, mostWhy))
}
