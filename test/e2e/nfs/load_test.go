package nfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/stowage-dev/stowage/test/harness/guest"
)

// loadArgument has this program write lines, and end.
const loadArgument = "load"

// Load is a pod's process that writes line after line to a file, each stored before
// the next, until its input ends. It isn't the node's first process: one with files
// on a server that is silent can't start another one.
type Load struct {
	process *exec.Cmd
	input   io.Closer
	stored  atomic.Int64
	end     chan struct{}
}

// writeLines is what that process does. It says which line is stored.
func writeLines(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		stop.Store(true)
	}()
	for line := 1; !stop.Load(); line++ {
		if _, err := fmt.Fprintln(file, line); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		fmt.Println(line)
	}
	return file.Close()
}

// Start begins to write to a file.
func (l *Load) Start(path string, _ *guest.Nothing) error {
	l.process = exec.Command("/proc/self/exe", loadArgument, path)
	l.process.Stderr = os.Stderr
	var err error
	if l.input, err = l.process.StdinPipe(); err != nil {
		return err
	}
	output, err := l.process.StdoutPipe()
	if err != nil {
		return err
	}
	l.stored.Store(0)
	l.end = make(chan struct{})
	go l.count(output)
	return l.process.Start()
}

func (l *Load) count(output io.Reader) {
	defer close(l.end)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		l.stored.Add(1)
	}
}

// Stored is how many lines are stored.
func (l *Load) Stored(_ guest.Nothing, stored *int64) error {
	*stored = l.stored.Load()
	return nil
}

// Stop ends the writing, and says how many lines are stored.
func (l *Load) Stop(_ guest.Nothing, stored *int64) error {
	if l.process == nil {
		return errors.New("nothing writes")
	}
	err := l.input.Close()
	<-l.end
	*stored = l.stored.Load()
	return errors.Join(err, l.process.Wait())
}
