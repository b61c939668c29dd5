// Package hotplug makes a disk of the mock cloud appear as a block device on an instance, and vanish
// again. It is a loop device of this machine, a device in a User Mode Linux guest, or no device at
// all. Package gcemock calls it.
//
// What an instance can see of its devices is in a folder of its own, beside the devices themselves.
// The folder has links named google-<device name>, as udev makes them on Google's machines. For each
// device it has a file with the serial, which neither kind of device can carry.
package hotplug

import (
	"context"
	"errors"
)

// ErrInUse says that a guest still uses a device.
var ErrInUse = errors.New("the device is in use")

// ErrNoGuest says that a guest isn't there.
var ErrNoGuest = errors.New("the guest doesn't run")

// Device is a disk as an instance sees it.
type Device struct {
	Project, Zone, Instance string
	// Name is the name that the instance knows it by.
	Name string
	// Image is the file that has its contents.
	Image    string
	ReadOnly bool
	// Shared devices have other instances that can write them.
	Shared bool
}

// Attacher makes devices appear on instances. Each call can be repeated after a crash,
// and after an error, which leaves what was there before. Calls for one instance come
// one after another.
type Attacher interface {
	// Attach makes the device appear; one that is there already is a success.
	Attach(ctx context.Context, device Device) error
	// Detach makes it vanish; one that isn't there is a success. One that can't be
	// taken away because it is used is ErrInUse, and stays.
	Detach(ctx context.Context, device Device) error
	// Resize makes it as large as its image; one that isn't there is a success.
	Resize(ctx context.Context, device Device) error
}

// None attaches nothing: for clients that only look at the API.
type None struct{}

// Attach implements Attacher.
func (None) Attach(context.Context, Device) error { return nil }

// Detach implements Attacher.
func (None) Detach(context.Context, Device) error { return nil }

// Resize implements Attacher.
func (None) Resize(context.Context, Device) error { return nil }
