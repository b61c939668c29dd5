package hotplug

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

// Loop shows disks as loop devices of this machine, which all instances are on.
type Loop struct {
	folder Folder
	// One image has one loop device, which instances that only read share.
	mutex sync.Mutex
}

// NewLoop returns a Loop that records in a folder what it attached.
func NewLoop(folder Folder) *Loop { return &Loop{folder: folder} }

// Attach implements Attacher.
func (l *Loop) Attach(ctx context.Context, requested Device) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := os.MkdirAll(l.folder.of(requested), 0o755); err != nil {
		return err
	}
	image, err := os.Open(requested.Image)
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := loopdev.Attach(ctx, image, loopdev.ForBlock)
	if err != nil {
		return err
	}
	defer loop.Close()
	if err := loop.SetReadOnly(requested.ReadOnly); err != nil {
		return err
	}
	return l.record(requested, loop)
}

func (l *Loop) record(requested Device, loop *loopdev.Loop) error {
	if err := l.folder.writeSerial(requested, filepath.Base(loop.Path())); err != nil {
		return err
	}
	return l.folder.writeLink(requested, loop.Path())
}

// Detach implements Attacher.
func (l *Loop) Detach(ctx context.Context, requested Device) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.folder.removeLink(requested); err != nil {
		return err
	}
	if err := l.detach(ctx, requested); err != nil {
		return err
	}
	return l.folder.removeSerial(requested)
}

// detach detaches the device of an image, unless other instances have it.
func (l *Loop) detach(ctx context.Context, requested Device) error {
	image, err := os.Open(requested.Image)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := loopdev.Find(image)
	if loop == nil || err != nil {
		return err
	}
	others, err := l.folder.targets()
	if err != nil || others[loop.Path()] > 0 {
		loop.Close()
		return err
	}
	return l.detachUnused(ctx, requested, image, loop)
}

// detachUnused detaches an unused device. A used one would detach with its last user: it is
// attached again, because the cloud still has it attached.
func (l *Loop) detachUnused(ctx context.Context, requested Device, image *os.File, loop *loopdev.Loop) error {
	if err := loop.SetReadOnly(false); err != nil {
		return err
	}
	err := loop.Detach(ctx)
	if !errors.Is(err, device.ErrInUse) {
		return err
	}
	kept, again := loopdev.Attach(ctx, image, loopdev.ForBlock)
	if again != nil {
		return errors.Join(err, again)
	}
	defer kept.Close()
	return errors.Join(
		fmt.Errorf("detaching %s: %w: unmount it first", requested.Name, ErrInUse),
		kept.SetReadOnly(requested.ReadOnly), l.record(requested, kept),
	)
}

// Resize implements Attacher.
func (l *Loop) Resize(_ context.Context, requested Device) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	image, err := os.Open(requested.Image)
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := loopdev.Find(image)
	if loop == nil || err != nil {
		return err
	}
	defer loop.Close()
	return loop.Resize()
}
