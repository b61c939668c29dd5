package output

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Level is how good the news in a cell is. It chooses the colour on a terminal.
type Level int

// Levels.
const (
	Plain Level = iota
	Good
	Warning
	Bad
	Faint
)

// Cell is one text of a table.
type Cell struct {
	Text  string
	Level Level
}

// Text is a cell without a level; an empty text is shown as "-".
func Text(text string) Cell { return Cell{Text: text} }

// Table is rows below the names of columns. Columns from Wide on are only printed in the
// format wide.
type Table struct {
	Columns []string
	// Wide is the number of columns that every format prints. 0: all of them.
	Wide int
	Rows [][]Cell
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Print writes the table in the printer's format, or nothing if it has no rows.
func (p *Printer) Print(table *Table) {
	if len(table.Rows) == 0 {
		return
	}
	columns := len(table.Columns)
	if table.Wide > 0 && p.Format != FormatWide {
		columns = table.Wide
	}
	header := make([]Cell, 0, columns)
	for _, name := range table.Columns[:columns] {
		header = append(header, Text(name))
	}
	rows := [][]Cell{header}
	for _, row := range table.Rows {
		shown := make([]Cell, 0, columns)
		for _, cell := range row[:columns] {
			shown = append(shown, Cell{Text: orDash(Escape(cell.Text)), Level: cell.Level})
		}
		rows = append(rows, shown)
	}
	widths := widthsOf(rows)
	for _, row := range rows {
		p.row(row, widths)
	}
}

func (p *Printer) row(row []Cell, widths []int) {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(p.Paint(cell.Text, cell.Level))
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text)+3))
		}
	}
	fmt.Fprintln(p.Out, b.String())
}

func widthsOf(rows [][]Cell) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	return widths
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Paint colours an escaped text if the printer prints colours.
func (p *Printer) Paint(text string, level Level) string {
	code := map[Level]string{Good: "32", Warning: "33", Bad: "31", Faint: "2"}[level]
	if !p.Color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
