package gcemock_test

import (
	"net/http"
	"path"
	"slices"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock"
	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

// zoneOf is where the instances are that can have a regional disk; far is in a zone without a replica.
var zoneOf = map[string]string{"left": zone, "right": other, "beside": other, "far": "europe-west3-c"}

// openFailover opens a cloud with these instances, and with regional disk data.
func openFailover(t *testing.T) (*cloud, *sockets) {
	t.Helper()
	set, wired := failoverOptions(t)
	return openFailoverWith(t, set), wired
}

func failoverOptions(t *testing.T) (gcemock.Options, *sockets) {
	t.Helper()
	wired := newSockets(t)
	set := options(t)
	set.Zones, set.Attacher = append(set.Zones, zoneOf["far"]), wired
	return set, wired
}

func openFailoverWith(t *testing.T, set gcemock.Options) *cloud {
	t.Helper()
	c := open(t, set)
	for name, zone := range zoneOf {
		if err := c.mock.EnsureInstance(project, zone, name, "c3-standard-4"); err != nil {
			t.Fatal(err)
		}
	}
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("data")).Do())
	return c
}

func regionDiskLink(name string) string {
	return "projects/" + project + "/regions/" + region + "/disks/" + name
}

// attachRegional asks for regional disk data to be attached.
func (c *cloud) attachRegional(instance, mode string, isForced bool) (*compute.Operation, error) {
	return c.Instances.AttachDisk(project, zoneOf[instance], instance, &compute.AttachedDisk{
		Source: regionDiskLink("data"), DeviceName: "data", Mode: mode,
	}).ForceAttach(isForced).Do()
}

// usersOf are the instances that regional disk data says it is attached to, which say so, too.
func (c *cloud) usersOf() (names []string) {
	c.Helper()
	disk, err := c.RegionDisks.Get(project, region, "data").Do()
	if err != nil {
		c.Fatal(err)
	}
	for _, user := range disk.Users {
		names = append(names, path.Base(user))
	}
	slices.Sort(names)
	var have []string
	for name, zone := range zoneOf {
		instance, err := c.Instances.Get(project, zone, name).Do()
		if err != nil {
			c.Fatal(err)
		}
		if len(instance.Disks) > 0 {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	if !slices.Equal(have, names) {
		c.Errorf("the disk names %v, but %v have it", names, have)
	}
	return names
}

func (c *cloud) isUsedBy(want ...string) {
	c.Helper()
	if got := c.usersOf(); !slices.Equal(got, want) {
		c.Errorf("it is used by %v, want %v", got, want)
	}
}

func TestForceTakesARegionalDiskFromItsInstance(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	_, err := c.attachRegional("right", "READ_WRITE", false)
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")

	operation := c.done(c.attachRegional("right", "READ_WRITE", true))

	if path.Base(operation.Zone) != other || operation.Region != "" {
		t.Errorf("the operation is in zone %q, region %q", operation.Zone, operation.Region)
	}
	c.isUsedBy("right")
	wired.has("right/data")
	// The body can say so, too.
	c.done(c.Instances.AttachDisk(project, zone, "left", &compute.AttachedDisk{
		Source: regionDiskLink("data"), DeviceName: "data", ForceAttach: true,
	}).Do())
	c.isUsedBy("left")
	wired.has("left/data")
}

func TestForceIsNoHindranceWhereNothingHasTheDisk(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("right", "READ_WRITE", true))
	c.isUsedBy("right")
	wired.has("right/data")
	_, err := c.attachRegional("left", "READ_WRITE", false)
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
}

func TestAZonalDiskIsNotAttachedByForce(t *testing.T) {
	c, _ := openFailover(t)
	c.makeDisk("zonal")
	_, err := c.attach("left", "zonal", "READ_WRITE").ForceAttach(true).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = c.Instances.AttachDisk(project, zone, "left", &compute.AttachedDisk{Source: diskLink("zonal"), ForceAttach: true}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	if users := c.disk("zonal").Users; len(users) > 0 {
		t.Errorf("it is used by %v", users)
	}
}

func TestForceDoesNotLiftTheOtherRules(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	_, err := c.attachRegional("far", "READ_WRITE", true)
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = c.attachRegional("left", "READ_WRITE", true)
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
	c.isUsedBy("left")
	wired.has("left/data")
}

func TestADiskThatManyWriteIsNotAttachedByForce(t *testing.T) {
	c, _ := openFailover(t)
	disk := regionalDisk("shared")
	disk.Type, disk.AccessMode = "regions/"+region+"/diskTypes/hyperdisk-balanced-high-availability", "READ_WRITE_MANY"
	c.done(c.RegionDisks.Insert(project, region, disk).Do())
	attach := c.Instances.AttachDisk(project, zone, "left", &compute.AttachedDisk{Source: regionDiskLink("shared"), DeviceName: "shared"})
	_, err := attach.ForceAttach(true).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(attach.ForceAttach(false).Do())
}

func TestAForcedReaderLeavesOtherReadersAndAWriterDoesNot(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_ONLY", false))
	c.done(c.attachRegional("right", "READ_ONLY", true))
	c.isUsedBy("left", "right")
	wired.has("left/data", "right/data")
	c.done(c.attachRegional("beside", "READ_WRITE", true))
	c.isUsedBy("beside")
	wired.has("beside/data")
}

func TestForceTakesADiskFromAnInstanceThatIsStopped(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	c.done(c.Instances.Stop(project, zone, "left").Do())
	c.done(c.attachRegional("right", "READ_WRITE", true))
	c.done(c.Instances.Start(project, zone, "left").Do())
	c.isUsedBy("right")
	wired.has("right/data")
}

func TestAForcedAttachmentThatFailsLeavesTheDiskWhereItWas(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	fails := func(why string) {
		t.Helper()
		if ended := c.ended(c.attachRegional("right", "READ_WRITE", true)); ended.Error == nil {
			t.Errorf("it ended well with %s", why)
		}
		c.isUsedBy("left")
		wired.has("left/data")
	}
	wired.broken = "right"
	fails("an instance that gets no device")
	wired.broken, wired.fails = "", 1
	fails("a device that stays")
	wired.fails = 0
	c.inject(fault.Fault{Method: "instances.attachDisk", Count: 1, Operation: "INTERNAL_ERROR"})
	fails("a fault")
}

func TestForceTakesADiskFromTheInstanceThatHasItWhenItsTurnComes(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	c.inject(fault.Fault{Method: "instances.attachDisk", Count: 1, Stuck: true})
	stuck, err := c.attachRegional("right", "READ_WRITE", true)
	if err != nil {
		t.Fatal(err)
	}
	c.done(c.detach("left", "data").Do())
	c.done(c.attachRegional("beside", "READ_WRITE", false))
	c.removeFaults()
	c.done(stuck, nil)
	c.isUsedBy("right")
	wired.has("right/data")
}

func TestADetachThatForceOvertakesEndsInError(t *testing.T) {
	c, wired := openFailover(t)
	c.done(c.attachRegional("left", "READ_WRITE", false))
	c.inject(fault.Fault{Method: "instances.detachDisk", Count: 1, Stuck: true})
	stuck, err := c.detach("left", "data").Do()
	if err != nil {
		t.Fatal(err)
	}
	c.done(c.attachRegional("right", "READ_WRITE", true))
	c.removeFaults()
	if ended := c.ended(stuck, nil); ended.Error == nil {
		t.Error("it ended well")
	}
	c.isUsedBy("right")
	wired.has("right/data")
}

func TestAnInstanceThatLosesADiskByForceWaitsForIt(t *testing.T) {
	c, wired := openFailover(t)
	c.makeDisk("zonal")
	c.done(c.attachRegional("left", "READ_WRITE", false))
	held, release := wired.hold()
	forced, err := c.attachRegional("right", "READ_WRITE", true)
	if err != nil {
		t.Fatal(err)
	}
	<-held
	attach, err := c.attach("left", "zonal", "READ_WRITE").Do()
	if err != nil {
		t.Fatal(err)
	}
	// By the time that this one is done, the one before would be, too.
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "later", SizeGb: 10}).Do())
	release()
	c.done(attach, nil)
	c.done(forced, nil)
	wired.has("left/zonal", "right/data")
}
