package gcemock_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

// sockets is an hotplug.Attacher that knows what is plugged in where.
type sockets struct {
	*testing.T
	mutex   sync.Mutex
	plugged map[string]hotplug.Device
	// busy are the instances on which a device appears or vanishes: one at a time.
	busy    map[string]bool
	resized int
	// fails is how likely a call fails, without effect.
	fails float64
	// broken is an instance on which no device appears.
	broken string
	// gate holds the next call; nil: it isn't held.
	gate chan struct{}
	held chan struct{}
}

func newSockets(t *testing.T) *sockets {
	return &sockets{T: t, plugged: map[string]hotplug.Device{}, busy: map[string]bool{}}
}

// openWired opens a cloud whose devices are seen.
func openWired(t *testing.T) (*cloud, *sockets) {
	t.Helper()
	wired := newSockets(t)
	set := options(t)
	set.Attacher = wired
	return open(t, set), wired
}

func socketOf(device hotplug.Device) string { return device.Instance + "/" + device.Name }

// hold keeps the next call from going on, until release is called; held is closed once it waits.
func (s *sockets) hold() (held <-chan struct{}, release func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.gate, s.held = make(chan struct{}), make(chan struct{})
	gate := s.gate
	return s.held, func() { close(gate) }
}

func (s *sockets) pass() {
	s.mutex.Lock()
	gate := s.gate
	s.gate = nil
	s.mutex.Unlock()
	if gate != nil {
		close(s.held)
		<-gate
	}
}

// onlyOne begins a change on an instance, and returns what ends it.
func (s *sockets) onlyOne(instance string) (end func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.busy[instance] {
		s.Errorf("two devices change at once on %s", instance)
	}
	s.busy[instance] = true
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.busy, instance)
	}
}

func (s *sockets) change(change func()) error {
	s.pass()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if rand.Float64() < s.fails {
		return errors.New("no current")
	}
	change()
	return nil
}

// Attach implements hotplug.Attacher.
func (s *sockets) Attach(_ context.Context, device hotplug.Device) error {
	defer s.onlyOne(device.Instance)()
	if device.Instance == s.broken {
		return errors.New("no socket")
	}
	return s.change(func() {
		for _, there := range s.plugged {
			if there.Image == device.Image && socketOf(there) != socketOf(device) && (!there.ReadOnly || !device.ReadOnly) {
				s.Errorf("%s is plugged in as %+v, and as %+v", device.Image, there, device)
			}
		}
		s.plugged[socketOf(device)] = device
	})
}

// Detach implements hotplug.Attacher.
func (s *sockets) Detach(_ context.Context, device hotplug.Device) error {
	defer s.onlyOne(device.Instance)()
	return s.change(func() { delete(s.plugged, socketOf(device)) })
}

// Resize implements hotplug.Attacher.
func (s *sockets) Resize(context.Context, hotplug.Device) error {
	return s.change(func() { s.resized++ })
}

// has checks what is plugged in.
func (s *sockets) has(want ...string) {
	s.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if got := slices.Sorted(maps.Keys(s.plugged)); !slices.Equal(got, want) {
		s.Errorf("plugged in are %v, want %v", got, want)
	}
}

func TestDevicesComeAndGoWithAttachments(t *testing.T) {
	c, wired := openWired(t)
	c.makeInstance("node")
	c.makeDisk("data")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	wired.has("node/data")
	c.done(c.Disks.Resize(project, zone, "data", &compute.DisksResizeRequest{SizeGb: 11}).Do())
	if wired.resized != 1 {
		t.Errorf("the device was resized %d times", wired.resized)
	}
	c.done(c.Instances.Stop(project, zone, "node").Do())
	wired.has()
	c.done(c.Instances.Start(project, zone, "node").Do())
	wired.has("node/data")
	c.done(c.detach("node", "data").Do())
	wired.has()

	c.done(c.Instances.Insert(project, zone, &compute.Instance{
		Name: "second", Disks: []*compute.AttachedDisk{{Source: diskLink("data"), DeviceName: "data", AutoDelete: true}},
	}).Do())
	wired.has("second/data")
	c.done(c.Instances.Delete(project, zone, "second").Do())
	wired.has()
	if list, err := c.Disks.List(project, zone).Do(); err != nil || len(list.Items) != 0 {
		t.Errorf("a disk that goes with its instance is left: %+v %v", list, err)
	}
}

func TestAFailureOfADeviceFailsItsOperation(t *testing.T) {
	c, wired := openWired(t)
	c.makeInstance("node")
	c.makeDisk("data")
	wired.fails = 1
	if ended := c.ended(c.attach("node", "data", "READ_WRITE").Do()); ended.Error == nil || ended.Error.Errors[0].Code != "INTERNAL_ERROR" {
		t.Errorf("attaching ended as %+v", ended.Error)
	}
	if users := c.disk("data").Users; len(users) != 0 {
		t.Errorf("the disk is used by %v", users)
	}
	wired.fails = 0
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	wired.fails = 1
	if ended := c.ended(c.detach("node", "data").Do()); ended.Error == nil {
		t.Error("detaching ended well")
	}
	if ended := c.ended(c.Instances.Delete(project, zone, "node").Do()); ended.Error == nil || c.instance("node").Status != "RUNNING" {
		t.Errorf("the instance is %s", c.instance("node").Status)
	}
	if users := c.disk("data").Users; len(users) != 1 {
		t.Errorf("the disk is used by %v", users)
	}
}

func TestDevicesAppearAgainAfterTheMachineRestarts(t *testing.T) {
	set := options(t)
	c := open(t, set)
	for _, name := range []string{"node", "stopped"} {
		c.makeInstance(name)
		c.makeDisk("for-" + name)
		c.done(c.attach(name, "for-"+name, "READ_WRITE").Do())
	}
	c.done(c.Instances.Stop(project, zone, "stopped").Do())
	c.stop()

	wired := newSockets(t)
	set.Attacher = wired
	open(t, set)
	wired.has("node/for-node")
}

// An operation that was to end in error took the disk, and made no device.
func TestAnAttachmentThatWasUnderWayHasNoDeviceBeforeItGoesOn(t *testing.T) {
	wired := newSockets(t)
	set := options(t)
	set.Attacher = wired
	c := open(t, set)
	c.makeInstance("node")
	c.makeDisk("data")
	held, release := wired.hold()
	operation, err := c.attach("node", "data", "READ_WRITE").Do()
	if err != nil {
		t.Fatal(err)
	}
	<-held
	crashed := copyFolder(t, set.Folder)
	release()
	c.done(operation, nil)

	wired = newSockets(t)
	set.Attacher, set.Folder, set.Latency = wired, crashed, time.Hour
	open(t, set)
	wired.has()
}
