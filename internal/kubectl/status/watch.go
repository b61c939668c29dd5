package status

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

// watching draws until the context ends. A read that fails is shown, and tried again. Notes are
// part of the frame. A read that the end interrupts is not drawn: the last frame stays.
func watching(ctx context.Context, c *cluster.Cluster, p *output.Printer, interval time.Duration) error {
	out, streams := p.Out, c.Streams
	defer func() { p.Out, c.Streams = out, streams }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		frame := &bytes.Buffer{}
		p.Out, c.Streams.ErrOut = frame, frame
		p.Line("%s, every %s, until Ctrl-C", c.Clock.Now().Format(time.TimeOnly), interval)
		p.Line("")
		err := once(ctx, c, p, true)
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			p.Line("Error: %s", err)
		}
		if _, err := out.Write(drawn(frame.Bytes(), output.Rows(out))); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if output.Rows(out) > 0 {
				fmt.Fprintln(out) // the terminal shows ^C: the shell's prompt begins below it
			}
			return nil
		case <-ticker.C:
		}
	}
}

// drawn is a frame that covers the one before, on a terminal with so many rows: from its top left
// corner, with the rest of each line and of the screen cleared, which doesn't flicker. Long lines
// are cut at the edge. Rows that the terminal doesn't have are counted: it would scroll.
func drawn(frame []byte, rows int) []byte {
	if rows == 0 {
		return append(frame, '\n')
	}
	lines := bytes.SplitAfter(frame, []byte("\n"))
	lines = lines[:len(lines)-1]
	// The last row stays empty, for the cursor.
	if most := max(1, rows-2); len(lines) > most+1 {
		more := fmt.Appendf(nil, "… %d more lines: make the terminal taller\n", len(lines)-most)
		lines = append(lines[:most:most], more)
	}
	cleared := bytes.ReplaceAll(bytes.Join(lines, nil), []byte("\n"), []byte("\x1b[K\n"))
	const noWrap, wrap = "\x1b[?7l", "\x1b[?7h"
	return append(append([]byte("\x1b[H"+noWrap), cleared...), "\x1b[J"+wrap...)
}
