package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// callName is what a process is called that makes one kernel call, and the program that it
// runs, in the folder of the program that starts it. Where that isn't, the process runs the
// same program: it works as well, and takes ten times the memory.
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
	Access mount.Access
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
	asked, err := parseRequest(os.Args[1])
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

// parseRequest reads what a process is to do. The program may be of another version than the
// one that started it: what it doesn't know it doesn't do by half.
func parseRequest(text string) (asked request, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return request{}, fmt.Errorf("reading the call of a mount (%s must be of the node agent's version): %w", callName, err)
	}
	return asked, nil
}

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
		return mount.Unmount(r.Target, r.Flags)
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
	return mount.Kernel{}.Bind(source, r.Target, r.Access)
}

// call is a kernel call in a process of its own.
type call struct {
	process *os.Process
	place   *place
	// gone is closed when the process is; err is set before.
	gone chan struct{}
	err  error
	// killed: the server hadn't answered when the call was given up.
	killed atomic.Bool
}

// start begins a call, once there is a place for it: else it is ErrBusy.
func (a Apart) start(ctx context.Context, asked request) (*call, error) {
	argument, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	at, err := a.placeFor(ctx, asked)
	if err != nil {
		return nil, err
	}
	begun, started := &call{place: at, gone: make(chan struct{})}, make(chan error)
	go begun.run(string(argument), !asked.Unmount, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting a process for a mount: %w", err)
	}
	return begun, nil
}

func (a Apart) placeFor(ctx context.Context, asked request) (*place, error) {
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return nil, err
	}
	places := a.Places
	if places == nil {
		places = &Places{}
	}
	return places.take(ctx, asked.peer(table), asked.limits(), asked.Remove != nil)
}

// run makes the call, and keeps its place until the process is gone. The process is killed
// with the thread that started it, and so with this program: no call goes on that nothing
// waits for.
func (c *call) run(argument string, asks bool, started chan<- error) {
	defer c.place.leave()
	defer close(c.gone)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	child := &exec.Cmd{
		Path: programOfCalls(), Args: []string{callName, argument}, Stdout: &output,
		// It does one thing after the other, and needs no thread for more.
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
		c.place.note(!c.killed.Load())
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

// wait returns how the call ended. When the context ends first, the call is
// killed, which the kernel heeds when it can.
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

// waitFor waits no longer than that.
func (c *call) waitFor(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.wait(ctx)
}
