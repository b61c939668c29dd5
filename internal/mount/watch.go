package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watchPause is how long after a change the next ones are waited for, to report all
// at once.
const watchPause = 100 * time.Millisecond

// Watch calls notify after the mount table of this process's mount namespace changed, ten
// times a second at most, until the context ends. It may miss a change before the call, but
// none after it. It waits in the kernel, which costs nothing.
func Watch(ctx context.Context, notify func()) error {
	// Not an os.File: Go's runtime would listen to it, too, and the kernel reports a change once.
	table, err := unix.Open(mountinfo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("watching the mount table: %w", err)
	}
	defer unix.Close(table)
	ends, end, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("watching the mount table: %w", err)
	}
	defer ends.Close()
	// Closing this end wakes the poll in the kernel.
	defer context.AfterFunc(ctx, func() { end.Close() })()
	defer end.Close()
	watched := []unix.PollFd{
		// Every change is an error, once for each open file: see proc(5).
		{Fd: int32(table), Events: unix.POLLPRI | unix.POLLERR},
		{Fd: int32(ends.Fd())},
	}
	for {
		if err := poll(watched, -1); err != nil {
			return fmt.Errorf("waiting for the mount table to change: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
		// One call covers what changed during the pause.
		if err := poll(watched[:1], 0); err != nil {
			return fmt.Errorf("looking whether the mount table changed: %w", err)
		}
		notify()
	}
}

func poll(watched []unix.PollFd, milliseconds int) error {
	for {
		if _, err := unix.Poll(watched, milliseconds); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
