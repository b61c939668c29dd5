package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
)

// load is a pod's process that writes line after line to a file, each stored before
// the next, until its input ends. It isn't the agent's: a process with files on a
// server that is silent can't start another one.
type load struct {
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

// StartLoad begins to write to a file.
func (n *Node) StartLoad(asked File, _ *Nothing) error {
	process := exec.Command("/proc/self/exe", loadArgument, n.pathOf(asked))
	process.Stderr = os.Stderr
	input, err := process.StdinPipe()
	if err != nil {
		return err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	n.load = &load{process: process, input: input, end: make(chan struct{})}
	go n.load.count(output)
	return process.Start()
}

func (l *load) count(output io.Reader) {
	defer close(l.end)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		l.stored.Add(1)
	}
}

// Stored is how many lines are stored.
func (n *Node) Stored(_ Nothing, stored *int64) error {
	if n.load == nil {
		return errors.New("nothing writes")
	}
	*stored = n.load.stored.Load()
	return nil
}

// StopLoad ends the writing, and says how many lines are stored.
func (n *Node) StopLoad(_ Nothing, stored *int64) error {
	err := n.load.input.Close()
	<-n.load.end
	*stored = n.load.stored.Load()
	return errors.Join(err, n.load.process.Wait())
}

// checkLines says whether a file has the lines from 1 to last.
func checkLines(path string, last int64) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Fields(string(content))
	if int64(len(lines)) != last {
		return fmt.Errorf("%d lines are stored, and the server has %d", last, len(lines))
	}
	for i, line := range lines {
		if line != strconv.Itoa(i+1) {
			return fmt.Errorf("line %d is %q", i+1, line)
		}
	}
	return nil
}
