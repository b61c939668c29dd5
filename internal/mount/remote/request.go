package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// callName is the name of a process that makes one kernel call, and of its program, which lies
// beside the program that starts it. Where it is missing, the process runs the same program:
// that works as well, and takes ten times the memory.
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

// ServeCall makes the call that this process was started for, and ends the process; in any
// other process it returns. Programs that use Calls call it before anything else.
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

// parseRequest reads what a process is to do. The program may be of another version than the one
// that started it. Unknown fields are an error, so that no call is half of what was meant.
func parseRequest(text string) (asked request, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return request{}, fmt.Errorf("reading the call of a mount (%s must be of the node agent's version): %w", callName, err)
	}
	return asked, nil
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
		return mount.Unmount(r.Target, r.Flags)
	}
}

// bind first asks the server, whatever the kernel caches: otherwise a directory that the
// server has lost could be bound, without an error.
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
