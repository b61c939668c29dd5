// Package remote mounts, unmounts and uses what a server at the other end of a network
// keeps. While a server is silent, the kernel waits, and a signal can't stop the calling
// process. So each call runs in a process of its own, and each server has a bounded number
// of slots for them. The program cmd/stowage-mount consists of ServeCall.
//
// Volume types for NFS call it. It never returns before the process is gone, unless the
// server is silent: then it is ErrSilent, and the call may still have an effect.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// ErrSilent says that a file system's server didn't answer in time.
var ErrSilent = errors.New("the server doesn't answer")

// ErrDetached says that a mount was detached because its server doesn't answer: unwritten data
// may be lost.
var ErrDetached = errors.New("the server doesn't answer: the mount was detached without it, and what wasn't written to it yet may be lost")

// Calls mounts and unmounts what a server at the other end of a network keeps. Each call runs
// in a process of its own, which can be killed: the agent goes on, and knows when the kernel
// is really done.
type Calls struct {
	// AnswerTimeout bounds how long a server may take to answer. UnmountTimeout bounds how long it
	// may take unwritten data, and ForceTimeout how long the kernel may take without the server.
	AnswerTimeout, UnmountTimeout, ForceTimeout time.Duration
	// Slots are those of all calls of this program. Nil: calls aren't counted.
	Slots *Slots
}

// NewCalls returns the Calls for ordinary servers. A program has one, so that its calls are
// counted together.
func NewCalls() Calls {
	return Calls{AnswerTimeout: 20 * time.Second, UnmountTimeout: 30 * time.Second, ForceTimeout: 5 * time.Second, Slots: &Slots{}}
}

// Table returns what is mounted now.
func (Calls) Table() (mount.Table, error) { return mount.Kernel{}.Table() }

// NFS mounts a directory of an NFS server. The end of the context kills the call; NFS returns
// once the process is gone. It is ErrBusy where too many calls wait already.
func (a Calls) NFS(ctx context.Context, share NFS, target string) error {
	err := a.finish(ctx, request{Mount: &share, Target: target})
	if errors.Is(err, unix.ENODEV) {
		return ErrNoNFSClient
	}
	return err
}

// BindMount makes the directory source visible at target. It ends as NFS does.
func (a Calls) BindMount(ctx context.Context, source, target string, access mount.Access) error {
	return a.finish(ctx, request{Bind: source, Target: target, Access: access})
}

// finish makes a call that has ended when it returns.
func (a Calls) finish(ctx context.Context, asked request) error {
	begun, err := a.start(ctx, asked)
	if err != nil {
		return err
	}
	err = begun.wait(ctx)
	<-begun.gone
	return err
}

// Unbind unmounts everything at path or below it, where the same files stay mounted elsewhere.
// A mount in use stays, unless its server is silent: then not even SIGKILL ends its users.
// That is ErrDetached.
func (a Calls) Unbind(ctx context.Context, path string) error {
	unbinding := &unbinding{calls: a, ctx: ctx}
	if err := mount.UnmountBelow(unbinding, path); err != nil {
		return err
	}
	return unbinding.detached
}

// unbinding is a Mounter for one Unbind.
type unbinding struct {
	mount.Kernel
	calls    Calls
	ctx      context.Context
	detached error
}

func (u *unbinding) Unmount(path string) error {
	orderly := u.calls.tryUnmount(u.ctx, path, 0)
	if orderly.err == nil || !errors.Is(orderly.err, unix.EBUSY) {
		return orderly.err
	}
	answers, err := u.calls.answers(u.ctx, path)
	if answers || err != nil {
		return errors.Join(orderly.err, err)
	}
	u.detached = ErrDetached
	return u.calls.tryUnmount(u.ctx, path, unix.MNT_DETACH).err
}

// Unmount unmounts the last mount of a file system, at path, which may have files to write.
// From a silent server it unmounts by force: that is ErrDetached. A mount in use is EBUSY, and
// stays. It returns in bounded time. The channel is closed when the kernel is done with the
// file system; until then, mounting it again isn't safe.
func (a Calls) Unmount(ctx context.Context, path string) (done <-chan struct{}, err error) {
	var calls []*call
	defer func() { done = after(calls) }()
	answers, err := a.answers(ctx, path)
	if err != nil {
		return nil, err
	}
	if answers {
		orderly := a.tryUnmount(ctx, path, 0)
		calls = append(calls, orderly.call)
		if !errors.Is(orderly.err, ErrSilent) {
			return nil, orderly.err
		}
	}
	for _, flags := range []int{unix.MNT_FORCE, unix.MNT_DETACH} {
		mounted, err := isMounted(path)
		if err != nil {
			return nil, err
		}
		if mounted {
			calls = append(calls, a.tryUnmount(ctx, path, flags).call)
		}
	}
	mounted, err := isMounted(path)
	switch {
	case err != nil:
		return nil, err
	case mounted:
		return nil, fmt.Errorf("unmounting %s: %w, and the kernel doesn't let go of it", path, ErrSilent)
	default:
		return nil, ErrDetached
	}
}

// attempt is an unmount that was tried; call is nil if it couldn't be.
type attempt struct {
	call *call
	err  error
}

// tryUnmount unmounts with flags of umount2(2).
func (a Calls) tryUnmount(ctx context.Context, path string, flags int) attempt {
	begun, err := a.start(ctx, request{Unmount: true, Target: path, Flags: flags})
	if err != nil {
		return attempt{err: err}
	}
	patience := a.ForceTimeout
	if flags == 0 {
		patience = a.UnmountTimeout
	}
	return attempt{begun, begun.waitFor(ctx, patience)}
}

// answers reports whether the server of a mount answers. An error of the file system is an
// answer, too.
func (a Calls) answers(ctx context.Context, path string) (bool, error) {
	begun, err := a.start(ctx, request{Ask: true, Target: path})
	if err != nil {
		return false, err
	}
	return !errors.Is(begun.waitFor(ctx, a.AnswerTimeout), ErrSilent), nil
}

func isMounted(path string) (bool, error) {
	table, err := mount.Kernel{}.Table()
	return table.IsMountPoint(path), err
}

// after returns a channel that is closed when all of the calls are gone.
func after(calls []*call) <-chan struct{} {
	var wait sync.WaitGroup
	for _, each := range calls {
		if each != nil {
			wait.Go(func() { <-each.gone })
		}
	}
	done := make(chan struct{})
	go func() {
		wait.Wait()
		close(done)
	}()
	return done
}

// start begins a call, once there is a slot for it: else it is ErrBusy.
func (a Calls) start(ctx context.Context, asked request) (*call, error) {
	argument, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	at, err := a.slotFor(ctx, asked)
	if err != nil {
		return nil, err
	}
	begun, started := &call{slot: at, gone: make(chan struct{})}, make(chan error)
	go begun.run(string(argument), !asked.Unmount, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting a process for a mount: %w", err)
	}
	return begun, nil
}

func (a Calls) slotFor(ctx context.Context, asked request) (*slot, error) {
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return nil, err
	}
	slots := a.Slots
	if slots == nil {
		slots = &Slots{}
	}
	return slots.acquire(ctx, asked.peer(table), asked.limits(), asked.Remove != nil)
}

// MakeFolder makes a folder on the share that is mounted at base, unless it is there. A crash
// leaves it with its owner and its mode, or not at all.
func (a Calls) MakeFolder(ctx context.Context, base string, folder Folder) error {
	ctx, cancel := context.WithTimeout(ctx, a.AnswerTimeout)
	defer cancel()
	return a.finish(ctx, request{Make: &folder, Target: base})
}

// RemoveFolder removes a folder from the share that is mounted at base, with all that it
// holds, as RemoveTree does. First it renames the folder, so that no half of it is visible at
// its path. A missing folder is a success. It ends when the folder is gone or the server is
// silent; what was removed by then stays removed.
func (a Calls) RemoveFolder(ctx context.Context, base string, folder Folder) error {
	for {
		err := a.removeSlice(ctx, base, folder)
		if !errors.Is(err, unix.EINPROGRESS) {
			return err
		}
	}
}

func (a Calls) removeSlice(ctx context.Context, base string, folder Folder) error {
	ctx, cancel := context.WithTimeout(ctx, removalSlice+a.AnswerTimeout)
	defer cancel()
	return a.finish(ctx, request{Remove: &folder, Target: base})
}
