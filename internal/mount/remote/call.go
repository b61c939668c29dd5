package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// programOfCalls is the program that makes calls.
func programOfCalls() string {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), callName)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside
		}
	}
	return "/proc/self/exe"
}

// HasProgram reports whether calls are made by the small program.
func HasProgram() bool { return programOfCalls() != "/proc/self/exe" }

// call is a kernel call in a process of its own.
type call struct {
	process *os.Process
	slot    *slot
	// gone is closed when the process is; err is set before.
	gone chan struct{}
	err  error
	// killed: the server hadn't answered when the call was killed.
	killed atomic.Bool
}

// run makes the call, and keeps its slot until the process is gone. The process dies with the
// thread that started it, and so with this program: no call outlives its caller.
func (c *call) run(argument string, asks bool, started chan<- error) {
	defer c.slot.release()
	defer close(c.gone)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	child := &exec.Cmd{
		Path: programOfCalls(), Args: []string{callName, argument}, Stdout: &output,
		// It makes one call, and more threads would only take memory.
		Env:         append(os.Environ(), "GOMAXPROCS=1"),
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	err := child.Start()
	c.process = child.Process
	started <- err
	if err != nil {
		return
	}
	c.err = outcome(child.Wait(), output.Bytes())
	if asks {
		c.slot.setAnswers(!c.killed.Load())
	}
}

func outcome(err error, output []byte) error {
	if err == nil {
		return nil
	}
	failure := &callError{}
	if json.Unmarshal(output, failure) != nil || failure.Text == "" {
		return fmt.Errorf("running the process of a mount: %w", err)
	}
	return failure
}

// wait returns how the call ended. The end of the context kills the process, as soon as the
// kernel can.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.gone:
		return c.err
	case <-ctx.Done():
		c.killed.Store(true)
		_ = c.process.Kill() // an error says that it is gone already
		return fmt.Errorf("%w: %w", ErrSilent, ctx.Err())
	}
}

// waitFor is wait with a timeout.
func (c *call) waitFor(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.wait(ctx)
}
