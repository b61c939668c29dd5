package hotplug

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// letters are those of the disks that guests have; a is left to their own.
	letters = "bcdefghijklmnop"
	// A program in the guest, such as one that looks for signatures, may have the
	// device open for a moment.
	detachPatience = 5 * time.Second
	detachRetry    = 50 * time.Millisecond
)

// Guests plugs disks into User Mode Linux guests, each named by its instance. It asks
// the guest what is plugged in, and remembers nothing. A guest sees a disk's new size
// once it is attached again.
type Guests struct {
	// Sockets is the folder in which the guests were started (uml_dir).
	Sockets string
	// Folder records what was attached. The guests see it, under the same path.
	Folder Folder
}

func (g Guests) socket(device Device) string {
	return filepath.Join(g.Sockets, device.Instance, "mconsole")
}

// Attach implements Attacher. A guest that doesn't run is ErrNoGuest.
func (g Guests) Attach(ctx context.Context, device Device) error {
	if err := os.MkdirAll(g.Folder.of(device), 0o755); err != nil {
		return err
	}
	letter, free, err := g.find(ctx, device)
	if err != nil {
		return err
	}
	if letter == "" {
		if letter, err = g.plug(ctx, device, free); err != nil {
			return err
		}
	}
	if err := g.Folder.writeSerial(device, "ubd"+letter); err != nil {
		return err
	}
	return g.Folder.writeLink(device, "/dev/ubd"+letter)
}

// plug gives the device one of the letters that were free.
func (g Guests) plug(ctx context.Context, device Device, free string) (letter string, err error) {
	if free == "" {
		return "", fmt.Errorf("attaching %s: a guest has %d disks at most", device.Name, len(letters))
	}
	letter = free[:1]
	// Before the device is there: a program that opens it finds the serial.
	if err := g.Folder.writeSerial(device, "ubd"+letter); err != nil {
		return "", err
	}
	flags := ""
	if device.ReadOnly {
		flags = "r"
	}
	if device.Shared {
		// Without it, the guest locks the file.
		flags += "c"
	}
	if _, err = command(ctx, g.socket(device), "config ubd"+letter+flags+"="+device.Image); err != nil {
		return "", errors.Join(err, g.Folder.removeSerial(device))
	}
	return letter, nil
}

// find asks the guest under which letter it has an image, and which letters are free.
func (g Guests) find(ctx context.Context, device Device) (letter, free string, err error) {
	for _, each := range strings.Split(letters, "") {
		image, err := command(ctx, g.socket(device), "config ubd"+each)
		if err != nil {
			return "", "", err
		}
		switch image {
		case device.Image:
			letter = each
		case "":
			free += each
		}
	}
	return letter, free, nil
}

// Detach implements Attacher. From a guest that doesn't run, the device is gone.
func (g Guests) Detach(ctx context.Context, device Device) error {
	letter, _, err := g.find(ctx, device)
	if errors.Is(err, ErrNoGuest) {
		return g.forget(device)
	}
	if err != nil {
		return err
	}
	if letter == "" {
		return g.forget(device)
	}
	if err := g.Folder.removeLink(device); err != nil {
		return err
	}
	err = g.unplug(ctx, device, letter)
	if errors.Is(err, ErrNoGuest) {
		return g.forget(device)
	}
	if err != nil {
		return errors.Join(err, g.Folder.writeLink(device, "/dev/ubd"+letter))
	}
	return g.Folder.removeSerial(device)
}

// unplug removes a device, once no process has it open.
func (g Guests) unplug(ctx context.Context, device Device, letter string) error {
	patience, cancel := context.WithTimeout(ctx, detachPatience)
	defer cancel()
	tick := time.NewTicker(detachRetry)
	defer tick.Stop()
	for {
		_, err := command(ctx, g.socket(device), "remove ubd"+letter)
		if !errors.Is(err, errRefused) {
			return err
		}
		select {
		case <-tick.C:
		case <-patience.Done():
			return fmt.Errorf("detaching %s: %w: %w", device.Name, ErrInUse, err)
		}
	}
}

// forget removes the record of a device that is gone.
func (g Guests) forget(device Device) error {
	return errors.Join(g.Folder.removeLink(device), g.Folder.removeSerial(device))
}

// Resize implements Attacher: a guest's kernel can't.
func (Guests) Resize(context.Context, Device) error { return nil }
