package gcemock_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

// The device is gone from one instance, or not yet, and the other may have its own.
func TestADiskThatIsBeingTakenIsOnOneInstanceAfterACrash(t *testing.T) {
	set, wired := failoverOptions(t)
	c := openFailoverWith(t, set)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	held, release := wired.hold()
	operation, err := c.attachRegional("right", "READ_WRITE", true)
	if err != nil {
		t.Fatal(err)
	}
	<-held
	crashed := copyFolder(t, set.Folder)
	c.isUsedBy("left")
	release()
	c.done(operation, nil)

	wired = newSockets(t)
	set.Attacher, set.Folder, set.Latency = wired, crashed, time.Hour
	c = open(t, set)
	wired.has()
	c.isUsedBy("left")
	c.stop()
	set.Latency = quick
	c = open(t, set)
	c.done(c.ZoneOperations.Get(project, other, operation.Name).Do())
	c.isUsedBy("right")
	wired.has("right/data")
}

// The other instance had its device before the crash, and goes on only after this one has started.
func TestAnInstanceThatStartsAfterACrashHasNoDeviceOfADiskThatIsBeingTaken(t *testing.T) {
	set, wired := failoverOptions(t)
	c := openFailoverWith(t, set)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	c.done(c.Instances.Stop(project, zone, "left").Do())
	c.inject(fault.Fault{Method: "instances.attachDisk", Count: 1, Delay: fault.Duration(50 * quick)})
	held, release := wired.hold()
	forced, err := c.attachRegional("right", "READ_WRITE", true)
	if err != nil {
		t.Fatal(err)
	}
	<-held
	start, err := c.Instances.Start(project, zone, "left").Do()
	if err != nil {
		t.Fatal(err)
	}
	crashed := copyFolder(t, set.Folder)
	image := filepath.Join(crashed, "images", itoa(c.regionDisk("data").Id)+".img")
	release()
	c.done(forced, nil)

	wired = newSockets(t)
	wired.plugged["right/data"] = hotplug.Device{Instance: "right", Name: "data", Image: image}
	set.Attacher, set.Folder = wired, crashed
	c = open(t, set)
	c.done(c.ZoneOperations.Get(project, zone, start.Name).Do())
	c.done(c.ZoneOperations.Get(project, other, forced.Name).Do())
	c.isUsedBy("right")
	wired.has("right/data")
}

// A copy of the folder is what a crash at that moment would have left.
func TestACrashDuringFailoversLeavesWhatCanGoOn(t *testing.T) {
	set, _ := failoverOptions(t)
	c := openFailoverWith(t, set)
	var copies []string
	for range 2 {
		for _, name := range []string{"left", "right", "beside"} {
			operation, err := c.attachRegional(name, "READ_WRITE", true)
			copies = append(copies, copyFolder(t, set.Folder), copyFolder(t, set.Folder))
			c.done(operation, err)
		}
	}
	for _, folder := range copies {
		wired := newSockets(t)
		set.Folder, set.Attacher = folder, wired
		crashed := open(t, set)
		crashed.allEndIn(zone, other)
		users := crashed.usersOf()
		if len(users) != 1 {
			t.Fatalf("it is used by %v", users)
		}
		wired.has(users[0] + "/data")
		crashed.stop()
	}
}
