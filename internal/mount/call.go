package mount

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// callName is what a process is called that makes one kernel call.
const callName = "stowage-mount"

// request is what a process is to do.
type request struct {
	// Exactly one is set.
	Mount   *NFS
	Bind    string
	Ask     bool
	Make    *Folder
	Remove  *Folder
	Unmount bool
	// Target is the mount point that it is about.
	Target string
	Access Access
	Flags  int
}

// reply is how it went.
type reply struct {
	Errno syscall.Errno
	Text  string
}

// callError is an error of another process's kernel call.
type callError reply

func (e *callError) Error() string { return e.Text }

func (e *callError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// ServeCall makes the call that this process was started for, and ends the
// process; it returns if it was started for something else. Programs that use
// Apart call it before anything else.
func ServeCall() {
	if len(os.Args) != 2 || os.Args[0] != callName {
		return
	}
	var asked request
	err := json.Unmarshal([]byte(os.Args[1]), &asked)
	if err == nil {
		err = asked.do()
	}
	if err == nil {
		os.Exit(0)
	}
	failure := reply{Text: err.Error()}
	errors.As(err, &failure.Errno)
	if err := json.NewEncoder(os.Stdout).Encode(failure); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

func (r request) do() error {
	switch {
	case r.Mount != nil:
		return r.Mount.mount(r.Target)
	case r.Bind != "":
		return r.bind()
	case r.Ask:
		var space unix.Statfs_t
		return unix.Statfs(r.Target, &space)
	case r.Make != nil:
		return r.Make.Make(context.Background(), r.Target)
	case r.Remove != nil:
		return r.Remove.removeFor(removalSlice, r.Target)
	default:
		return unmount(r.Target, r.Flags)
	}
}

// bind asks the server first, whatever the kernel remembers: a directory that the
// server has lost can be bound, too, and then nobody would be told.
func (r request) bind() error {
	source, err := os.OpenFile(r.Bind, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	var answer unix.Statx_t
	err = unix.Statx(int(source.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &answer)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", r.Bind, err)
	}
	return Kernel{}.Bind(source, r.Target, r.Access)
}

// call is a kernel call in a process of its own.
type call struct {
	process *os.Process
	// gone is closed when the process is; err is set before.
	gone chan struct{}
	err  error
}

// start begins a call.
func start(asked request) (*call, error) {
	argument, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	begun, started := &call{gone: make(chan struct{})}, make(chan error)
	go func() {
		defer close(begun.gone)
		// The process is killed with the thread that started it, and so with this
		// program: nothing goes on mounting what nobody asks for any more.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var output bytes.Buffer
		child := &exec.Cmd{
			Path: "/proc/self/exe", Args: []string{callName, string(argument)}, Stdout: &output,
			SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		}
		err := child.Start()
		begun.process = child.Process
		started <- err
		if err == nil {
			begun.err = outcome(child.Wait(), output.Bytes())
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting a process for a mount: %w", err)
	}
	return begun, nil
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

// wait returns how the call ended. When the context ends first, the call is
// killed, which the kernel heeds when it can.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.gone:
		return c.err
	case <-ctx.Done():
		_ = c.process.Kill() // an error says that it is gone already
		return fmt.Errorf("%w: %w", ErrSilent, ctx.Err())
	}
}

// waitFor waits no longer than that.
func (c *call) waitFor(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.wait(ctx)
}
