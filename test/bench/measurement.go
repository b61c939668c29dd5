package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// measurement is one thing that programs do once, from a beginning to an end that a watch
// sees.
type measurement struct {
	// result has what is known of it before, and then all.
	result
	// running are the programs, where they run before. Otherwise begin starts them.
	running processes
	// spent is the CPU time that isn't counted: what programs take to start, of those
	// that begin starts.
	spent time.Duration
	// views see what happens, and done reports whether that was all.
	views []view
	done  func() bool
	// begin does what the programs have to act on.
	begin func() (processes, error)
	// seen sets in the result what the views saw.
	seen func(*result)
	// part: it is no error if the end doesn't come for all.
	part bool
	// own counts the benchmark's own requests to the API server while it measures.
	own requests
	// resources are those that the work consists of writes to; none: all.
	resources []string
	// written are lists of the kinds of the objects that Stowage's programs and the bare client leave alike.
	written []client.ObjectList
}

// measureOnce waits until all is quiet, has programs do something, and fills the result once
// all is quiet again. It returns programs that it started, also with an error.
func (b *testbed) measureOnce(m *measurement) (processes, error) {
	before, err := b.awaitQuiet()
	if err != nil {
		return nil, err
	}
	uncounted := m.spent
	if m.running != nil {
		used, err := m.running.usage()
		if err != nil {
			return nil, err
		}
		m.spent = used.cpu
	}
	whole, err := wholeCPU()
	if err != nil {
		return nil, err
	}
	watching, err := b.observe(m.views...)
	if err != nil {
		return nil, err
	}
	defer watching.stop()
	running, err := m.begin()
	if err != nil {
		return running, fmt.Errorf("beginning: %w", err)
	}
	m.Program = cmp.Or(m.Program, running[0].Name)
	err = watching.await(b.ctx, running, m.done)
	if err != nil && (!m.part || !errors.Is(err, errStalled)) {
		return running, err
	}
	watching.read(func() { m.seen(&m.result) })
	if m.AllEach, err = cpuEach(whole+uncounted, m.Done); err != nil {
		return running, err
	}
	now, err := b.awaitQuiet()
	if err != nil {
		return running, err
	}
	used, err := running.usage()
	m.wrote(now.since(before).since(m.own), m.resources...)
	m.used(used, m.spent)
	return running, errors.Join(err, b.compareWritten(m))
}
