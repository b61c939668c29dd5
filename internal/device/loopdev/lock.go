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
	// lockRetry is how often a lock is tried that another holds, who is done soon.
	lockRetry = 10 * time.Millisecond
	// lockPatience is longer than anybody holds it who attaches. Who copies an image,
	// or removes it, may take long.
	lockTimeout = 3 * time.Second
)

// Reserve keeps an image from being attached until the file that it returns is
// closed. An image that is attached is ErrAttached, one that somebody else reserved
// ErrReserved. Whoever removes one holds it until its name is gone, and so no loop
// device comes up meanwhile.
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

// lock locks an image, by a lock that ends with the file returned. It is the
// kernel's, so that it holds between processes, and none outlives its process.
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
