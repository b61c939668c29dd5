package guest

import (
	"bytes"
	"io"
)

// progress writes on what Ginkgo prints, but for the stacks in its reports of specs that
// still run: 60 lines a minute, of which the step and its last error are what tells. The
// report on a spec that has failed keeps them.
type progress struct {
	to io.Writer
	// line is one that no newline has ended yet.
	line []byte
	// reports and stack say what the line is part of: such a report, whose first line is
	// indented so deep and all others deeper, and a stack in it.
	reports, stack bool
	depth          int
}

func (p *progress) Write(printed []byte) (int, error) {
	p.line = append(p.line, printed...)
	for {
		end := bytes.IndexByte(p.line, '\n') + 1
		if end == 0 {
			return len(printed), nil
		}
		line := p.line[:end]
		p.line = p.line[end:]
		p.see(line)
		if p.stack {
			continue
		}
		if _, err := p.to.Write(line); err != nil {
			return len(printed), err
		}
	}
}

// see finds out what a line is part of.
func (p *progress) see(line []byte) {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	depth := len(line) - len(bytes.TrimLeft(line, " "))
	switch {
	case has("Automatically polling progress"):
		p.reports, p.stack, p.depth = true, false, depth
	case depth <= p.depth && len(bytes.TrimSpace(line)) > 0:
		p.reports, p.stack = false, false
	case has("Spec Goroutine"), has("Goroutines of Interest"):
		p.stack = p.reports
	case has("Begin Additional Progress Reports"):
		p.stack = false
	}
}
