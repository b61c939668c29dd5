package guest

import (
	"bytes"
	"io"
)

// progress writes on what Ginkgo prints, but for the stacks in its reports of specs that
// still run: 60 lines a minute, of which only the step and its last error help. The
// report on a spec that has failed keeps them.
type progress struct {
	to io.Writer
	// line is one that no newline has ended yet.
	line []byte
	// reports and stack say what the line is part of: such a report, of which so many lines
	// were seen, and a stack in it. The first line is indented so deep, and all others but
	// the spec's name, which follows it, are deeper.
	reports, depth int
	stack          bool
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

func (p *progress) see(line []byte) {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	depth := len(line) - len(bytes.TrimLeft(line, " "))
	switch {
	case has("Automatically polling progress"):
		p.reports, p.depth, p.stack = 1, depth, false
	case p.reports == 0:
	case p.reports > 1 && depth <= p.depth && len(bytes.TrimSpace(line)) > 0:
		p.reports, p.stack = 0, false
	default:
		p.reports++
		p.stack = p.stack && !has("Begin Additional Progress Reports") || has("Spec Goroutine") || has("Goroutines of Interest")
	}
}
