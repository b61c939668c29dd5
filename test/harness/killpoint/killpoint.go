// Package killpoint kills a program right before a chosen one of its steps: the system
// calls by which it changes what outlives it. With each step in turn, a test sees all that
// a crash can leave; the program needs no hooks for it. It is for tests of the node agent,
// and needs root.
//
// What the program starts is watched like itself, but it is the program that is killed.
package killpoint

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Never is the step before which nothing is killed.
const Never = 0

// Run runs a command, which wasn't started yet, and kills it right before this step; the
// first one is 1. It returns how many steps were begun when the command, and whatever it
// had started, was gone. A command that is killed is no error. Its output, if any is
// asked for, goes to files.
func Run(command *exec.Cmd, before int) (steps int, killed bool, err error) {
	run := &watched{command: command, before: before, began: make(chan error, 1), started: make(chan struct{}), ended: make(chan struct{})}
	go run.start()
	if err := <-run.began; err != nil {
		return 0, false, fmt.Errorf("watching the steps of a program: %w", err)
	}
	defer unix.Close(run.listener)
	if err := run.follow(); err != nil {
		return 0, false, fmt.Errorf("watching the steps of a program: %w", err)
	}
	<-run.ended
	run.killing.Wait()
	if run.killed {
		return run.steps, true, nil
	}
	return run.steps, false, run.err
}

type watched struct {
	command       *exec.Cmd
	before, steps int
	killed        bool
	// listener reports steps. It is set before began gets a value.
	listener int
	// thread is what starts the command, and is watched like it. Its own calls are no
	// steps: it may write down what it opens, as a test does whose result is kept, and Go's
	// runtime may wake another thread. They always go on, as the command's end waits for them.
	thread  uint32
	began   chan error
	started chan struct{}
	// ended is closed when the command is gone; err is set before.
	ended chan struct{}
	err   error

	killing sync.WaitGroup
	// holding guards held: the calls that wait until the command, which was killed, is gone.
	holding sync.Mutex
	held    []notification
}

// start runs the command from a thread whose system calls are watched, which the
// command inherits. The thread ends with the goroutine, as it is never unlocked.
func (w *watched) start() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// Go never ends the first thread. While this goroutine has it, the next gets another.
		defer runtime.UnlockOSThread()
		next := make(chan struct{})
		go func() { defer close(next); w.start() }()
		<-next
		return
	}
	w.thread = uint32(unix.Gettid())
	listener, err := watchThread()
	if err != nil {
		w.began <- err
		return
	}
	w.listener = listener
	w.began <- nil
	defer close(w.ended)
	w.err = w.command.Start()
	close(w.started)
	if w.err == nil {
		w.err = w.command.Wait()
	}
}

// follow lets one step after the other be done, until no watched process is left.
func (w *watched) follow() error {
	for {
		call, err := receive(w.listener)
		switch {
		case errors.Is(err, errNoProcess):
			return nil
		case err != nil:
			return err
		}
		if call.Thread != w.thread {
			if !w.killed && isStep(call) {
				w.steps++
				if w.steps == w.before {
					w.killed = true
					w.killing.Go(w.kill)
				}
			}
			if w.killed && w.hold(call) {
				continue
			}
		}
		if err := proceed(w.listener, call); err != nil {
			return err
		}
	}
}

// kill kills the command. The step that it was about to take is never taken; what others do goes on once it is gone.
func (w *watched) kill() {
	// Its first step may come before Start has returned.
	<-w.started
	_ = w.command.Process.Kill() // an error says that it is gone already
	<-w.ended
	w.holding.Lock()
	defer w.holding.Unlock()
	for _, call := range w.held {
		_ = proceed(w.listener, call) // an error says that its process is gone, too
	}
}

// hold reports whether a call has to wait until the command is gone.
func (w *watched) hold(call notification) bool {
	w.holding.Lock()
	defer w.holding.Unlock()
	select {
	case <-w.ended:
		return false
	default:
		w.held = append(w.held, call)
		return true
	}
}
