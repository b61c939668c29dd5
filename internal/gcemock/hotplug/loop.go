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

// NewLoop returns a Loop that tells in a folder what it attached.
func NewLoop(folder Folder) *Loop { return &Loop{folder: folder} }

// Attach implements Attacher.
func (l *Loop) Attach(ctx context.Context, asked Device) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := os.MkdirAll(l.folder.of(asked), 0o755); err != nil {
		return err
	}
	image, err := os.Open(asked.Image)
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := loopdev.Attach(ctx, image, loopdev.ForBlock)
	if err != nil {
		return err
	}
	defer loop.Close()
	if err := loop.SetReadOnly(asked.ReadOnly); err != nil {
		return err
	}
	return l.tell(asked, loop)
}

func (l *Loop) tell(asked Device, loop *loopdev.Loop) error {
	if err := l.folder.writeSerial(asked, filepath.Base(loop.Path())); err != nil {
		return err
	}
	return l.folder.writeLink(asked, loop.Path())
}

// Detach implements Attacher.
func (l *Loop) Detach(ctx context.Context, asked Device) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.folder.removeLink(asked); err != nil {
		return err
	}
	if err := l.detach(ctx, asked); err != nil {
		return err
	}
	return l.folder.removeSerial(asked)
}

// detach takes the device of an image away, unless other instances have it.
func (l *Loop) detach(ctx context.Context, asked Device) error {
	image, err := os.Open(asked.Image)
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
	return l.takeAway(ctx, asked, image, loop)
}

// takeAway detaches a device that nobody uses. One that is used would go with its last
// user; it is made to stay instead, as the cloud says that it does.
func (l *Loop) takeAway(ctx context.Context, asked Device, image *os.File, loop *loopdev.Loop) error {
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
		fmt.Errorf("detaching %s: %w: unmount it first", asked.Name, ErrInUse),
		kept.SetReadOnly(asked.ReadOnly), l.tell(asked, kept),
	)
}

// Resize implements Attacher.
func (l *Loop) Resize(_ context.Context, asked Device) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	image, err := os.Open(asked.Image)
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
