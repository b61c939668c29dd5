package upgrade_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Containers are the containers of the node, by name.
type Containers struct {
	mutex sync.Mutex
	all   map[string]*process
}

// Container says how one is started.
type Container struct{ PodDir, Container, Name string }

// process is a container that was started.
type process struct {
	command *exec.Cmd
	input   io.Closer
	rounds  atomic.Int64
	// ended is closed when the process is gone; then err is how it went, and says is what it said.
	ended chan struct{}
	err   error
	says  bytes.Buffer
}

// Start starts a container.
func (c *Containers) Start(request Container, _ *guest.Nothing) error {
	p := &process{command: exec.Command("/proc/self/exe", containerArgument, request.PodDir, request.Container, request.Name), ended: make(chan struct{})}
	p.command.Stderr = &p.says
	p.command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	var err error
	if p.input, err = p.command.StdinPipe(); err != nil {
		return err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
	go p.follow(output)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.all == nil {
		c.all = map[string]*process{}
	}
	c.all[request.Name] = p
	return nil
}

// follow counts the rounds of a container until it ends.
func (p *process) follow(output io.Reader) {
	defer close(p.ended)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		p.rounds.Add(1)
	}
	p.err = p.command.Wait()
}

func (c *Containers) find(name string) (*process, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if p := c.all[name]; p != nil {
		return p, nil
	}
	return nil, errors.New("there is no container " + name)
}

// Rounds is how often a container has worked in all of its volumes. One that has ended is an error.
func (c *Containers) Rounds(name string, rounds *int64) error {
	p, err := c.find(name)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
		return fmt.Errorf("container %s ended after %d rounds: %w: %s", name, p.rounds.Load(), p.err, p.says.String())
	default:
		*rounds = p.rounds.Load()
		return nil
	}
}

// Stop ends a container. One that failed before is an error.
func (c *Containers) Stop(name string, _ *guest.Nothing) error {
	p, err := c.find(name)
	if err != nil {
		return err
	}
	err = p.input.Close()
	<-p.ended
	if p.err != nil {
		err = fmt.Errorf("container %s: %w: %s", name, p.err, p.says.String())
	}
	return err
}
