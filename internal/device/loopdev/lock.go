package loopdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

const (
	// lockRetry is the interval at which a lock of another program is tried.
	lockRetry = 10 * time.Millisecond
	// lockTimeout is longer than any attach holds the lock. A copy or a removal of an image
	// may hold it for long.
	lockTimeout = 3 * time.Second
)

// Reserve keeps an image from being attached until the returned file is closed. An attached
// image is ErrAttached, one that another caller reserved ErrReserved. A removal holds it until
// the name is gone, so that no loop device appears before.
func Reserve(ctx context.Context, image *os.File) (*os.File, error) {
	held, err := lock(ctx, image)
	if err != nil {
		return nil, err
	}
	loop, err := Find(image)
	if err == nil && loop != nil {
		loop.Close()
		err = fmt.Errorf("%s: %w: %s", image.Name(), device.ErrAttached, loop.Path())
	}
	if err != nil {
		held.Close()
		return nil, err
	}
	return held, nil
}

// lock locks an image until the returned file is closed. The lock is the kernel's: it holds
// between processes, and none outlives its process.
func lock(ctx context.Context, image *os.File) (*os.File, error) {
	file, err := device.Reopen(image, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeoutCause(ctx, lockTimeout, device.ErrReserved)
	defer cancel()
	if err := awaitLock(patient, file); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", image.Name(), err)
	}
	return file, nil
}

func awaitLock(ctx context.Context, file *os.File) error {
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
