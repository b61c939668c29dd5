package explain

import (
	"strings"

	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

var levels = map[State]output.Level{OK: output.Good, Waiting: output.Warning, Wrong: output.Bad, Unknown: output.Faint}

// show writes a report.
func show(p *output.Printer, report *Report) error {
	if done, err := p.Structured(report); done {
		return err
	}
	table := &output.Table{Columns: []string{"STATE", "OBJECT", "IT SAYS"}}
	for _, link := range report.Links {
		table.Add(output.Cell{Text: string(link.State), Level: levels[link.State]}, output.Text(indent(link)), output.Text(link.Says))
	}
	p.Print(table)
	p.Line("")
	problem := report.Problem
	if problem == nil {
		p.Line("No problem found.")
		return nil
	}
	p.Line("First problem: %s: %s", title(*problem), problem.Says)
	if problem.Do != "" {
		p.Line("What to do:    %s", problem.Do)
	}
	return nil
}

func title(link Link) string { return strings.TrimSpace(link.Kind + " " + link.Name) }

func indent(link Link) string {
	if link.Depth == 0 {
		return title(link)
	}
	return strings.Repeat("  ", link.Depth-1) + "└ " + title(link)
}
