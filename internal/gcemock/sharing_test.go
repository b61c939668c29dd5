package gcemock_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
)

// makeHyperdisk makes a hyperdisk with an access mode.
func (c *cloud) makeHyperdisk(name, kind, accessMode string) {
	c.Helper()
	c.done(c.Disks.Insert(project, zone, &compute.Disk{
		Name: name, Type: "zones/" + zone + "/diskTypes/" + kind, SizeGb: 100, AccessMode: accessMode,
	}).Do())
}

// makeMachines makes instances that take hyperdisks.
func (c *cloud) makeMachines(names ...string) {
	c.Helper()
	for _, name := range names {
		if err := c.mock.EnsureInstance(project, zone, name, "c3-standard-4"); err != nil {
			c.Fatal(err)
		}
	}
}

func TestADiskThatManyWriteIsAttachedTwice(t *testing.T) {
	c := open(t, options(t))
	c.makeHyperdisk("shared", "hyperdisk-balanced", "READ_WRITE_MANY")
	c.makeMachines("one", "two")
	c.done(c.attach("one", "shared", "READ_WRITE").Do())
	c.done(c.attach("two", "shared", "READ_WRITE").Do())
	if users := c.disk("shared").Users; len(users) != 2 {
		t.Errorf("it is used by %v", users)
	}
	_, err := c.attach("two", "shared", "READ_WRITE").Do()
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
}

func TestAHyperdiskThatOneWritesIsAttachedOnce(t *testing.T) {
	c := open(t, options(t))
	c.makeHyperdisk("single", "hyperdisk-balanced", "")
	if mode := c.disk("single").AccessMode; mode != "READ_WRITE_SINGLE" {
		t.Errorf("its access mode is %q", mode)
	}
	c.makeMachines("one", "two")
	c.done(c.attach("one", "single", "READ_ONLY").Do())
	for _, mode := range []string{"READ_WRITE", "READ_ONLY"} {
		_, err := c.attach("two", "single", mode).Do()
		c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
	}
}

func TestADiskThatManyReadIsNeverWritten(t *testing.T) {
	c := open(t, options(t))
	c.makeHyperdisk("model", "hyperdisk-ml", "READ_ONLY_MANY")
	c.makeMachines("one", "two")
	_, err := c.attach("one", "model", "READ_WRITE").Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(c.attach("one", "model", "READ_ONLY").Do())
	c.done(c.attach("two", "model", "READ_ONLY").Do())
}

func TestOnlyHyperdisksHaveAccessModes(t *testing.T) {
	c := open(t, options(t))
	for kind, mode := range map[string]string{
		"pd-ssd": "READ_WRITE_MANY", "pd-balanced": "READ_WRITE_SINGLE", "hyperdisk-balanced": "READ_ONLY_MANY", "hyperdisk-ml": "READ_WRITE_MANY",
	} {
		_, err := c.Disks.Insert(project, zone, &compute.Disk{
			Name: "data", Type: "zones/" + zone + "/diskTypes/" + kind, SizeGb: 100, AccessMode: mode,
		}).Do()
		c.refused(err, http.StatusBadRequest, "invalid")
	}
}

func TestAnAccessModeChangesWhileNothingUsesTheDisk(t *testing.T) {
	c := open(t, options(t))
	c.makeHyperdisk("model", "hyperdisk-ml", "")
	c.makeMachines("one")
	change := func(mode string) (*compute.Operation, error) {
		return c.Disks.Update(project, zone, "model", &compute.Disk{AccessMode: mode}).Paths("accessMode").Do()
	}
	c.done(c.attach("one", "model", "READ_WRITE").Do())
	_, err := change("READ_ONLY_MANY")
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
	c.done(c.detach("one", "model").Do())
	c.done(change("READ_ONLY_MANY"))
	if mode := c.disk("model").AccessMode; mode != "READ_ONLY_MANY" {
		t.Errorf("its access mode is %s", mode)
	}
	_, err = change("READ_WRITE_SINGLE")
	c.refused(err, http.StatusBadRequest, "invalid")
}

func TestAMachineSupportsTheDisksOfItsSeries(t *testing.T) {
	c := open(t, options(t))
	c.makeHyperdisk("fast", "hyperdisk-balanced", "")
	c.makeDisk("persistent")
	for machine, disk := range map[string]string{"e2-standard-2": "fast", "n4-standard-2": "persistent"} {
		if err := c.mock.EnsureInstance(project, zone, machine, machine); err != nil {
			t.Fatal(err)
		}
		ended := c.ended(c.attach(machine, disk, "READ_WRITE").Do())
		if ended.Error == nil || ended.Error.Errors[0].Code != "UNSUPPORTED_OPERATION" ||
			!strings.Contains(ended.Error.Errors[0].Message, "features are not compatible") {
			t.Errorf("a disk of %s ends as %+v", machine, ended.Error)
		}
		if users := c.disk(disk).Users; len(users) > 0 {
			t.Errorf("it is used by %v", users)
		}
	}
}

func TestARegionalDiskIsAttachedInItsZones(t *testing.T) {
	three := options(t)
	three.Zones = append(three.Zones, "europe-west3-c")
	c := open(t, three)
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("both")).Do())
	source := "projects/" + project + "/regions/" + region + "/disks/both"
	for _, zone := range three.Zones {
		if err := c.mock.EnsureInstance(project, zone, "node", "e2-standard-2"); err != nil {
			t.Fatal(err)
		}
	}
	attach := func(zone string) (*compute.Operation, error) {
		return c.Instances.AttachDisk(project, zone, "node", &compute.AttachedDisk{Source: source, DeviceName: "both"}).Do()
	}
	_, err := attach("europe-west3-c")
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(attach(other))
	_, err = attach(zone)
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
	_, err = c.RegionDisks.Delete(project, region, "both").Do()
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
}

func TestFromAZoneThatIsDownOnlyForceTakesADisk(t *testing.T) {
	c := open(t, options(t))
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("both")).Do())
	for _, zone := range []string{zone, other} {
		if err := c.mock.EnsureInstance(project, zone, "node", "e2-standard-2"); err != nil {
			t.Fatal(err)
		}
	}
	both := &compute.AttachedDisk{Source: "projects/" + project + "/regions/" + region + "/disks/both", DeviceName: "both"}
	c.done(c.Instances.AttachDisk(project, zone, "node", both).Do())
	c.mock.SetDown(zone, true)
	_, err := c.Instances.DetachDisk(project, zone, "node", "both").Do()
	c.refused(err, http.StatusServiceUnavailable, "backendError")
	c.done(c.Instances.AttachDisk(project, other, "node", both).ForceAttach(true).Do())
}

func TestAZoneIsDownUntilItIsUpAgain(t *testing.T) {
	c := open(t, options(t))
	for _, down := range []bool{true, false} {
		status, _ := c.call(http.MethodPut, "/_mock/zones/"+zone, fmt.Sprintf(`{"down":%t}`, down))
		found, err := c.Zones.Get(project, zone).Do()
		if status != http.StatusOK || err != nil || (found.Status == "DOWN") != down {
			t.Errorf("it is %s: %d, %v", found.Status, status, err)
		}
		_, err = c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).Do()
		if (err != nil) != down {
			t.Errorf("a disk is made with the error %v", err)
		}
	}
}

func TestAZoneThatIsSilentCanNotBeRead(t *testing.T) {
	c := open(t, options(t))
	if err := c.mock.EnsureInstance(project, zone, "node", "e2-standard-2"); err != nil {
		t.Fatal(err)
	}
	if status, _ := c.call(http.MethodPut, "/_mock/zones/"+zone, `{"silent":true}`); status != http.StatusBadRequest {
		t.Errorf("a zone that is up is silent: %d", status)
	}
	if status, _ := c.call(http.MethodPut, "/_mock/zones/"+zone, `{"down":true,"silent":true}`); status != http.StatusOK {
		t.Fatalf("it isn't silent: %d", status)
	}
	_, err := c.Instances.Get(project, zone, "node").Do()
	c.refused(err, http.StatusServiceUnavailable, "backendError")
	_, err = c.Instances.List(project, zone).Do()
	c.refused(err, http.StatusServiceUnavailable, "backendError")
	if found, err := c.Zones.Get(project, zone).Do(); err != nil || found.Status != "DOWN" {
		t.Errorf("the zone is %+v, %v", found, err)
	}
	all, err := c.Instances.AggregatedList(project).Do()
	if err != nil {
		t.Fatal(err)
	}
	if here := all.Items["zones/"+zone]; here.Warning == nil || here.Warning.Code != "UNREACHABLE" || len(here.Instances) > 0 {
		t.Errorf("the list has %+v", here)
	}
	c.mock.SetDown(zone, false)
	if _, err := c.Instances.Get(project, zone, "node").Do(); err != nil {
		t.Errorf("it is up again: %v", err)
	}
}

func TestARegionalDiskNeedsTwoZonesOfItsRegion(t *testing.T) {
	c := open(t, options(t))
	for name, zones := range map[string][]string{
		"none": nil, "one": {"zones/" + zone}, "the same": {"zones/" + zone, "zones/" + zone}, "another": {"zones/" + zone, "zones/mars-a"},
	} {
		disk := regionalDisk("data")
		disk.ReplicaZones = zones
		_, err := c.RegionDisks.Insert(project, region, disk).Do()
		t.Log(name)
		c.refused(err, http.StatusBadRequest, "invalid")
	}
	_, err := c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10, ReplicaZones: []string{"zones/" + zone}}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	standard := regionalDisk("data")
	standard.Type, standard.SizeGb = "regions/"+region+"/diskTypes/pd-standard", 199
	_, err = c.RegionDisks.Insert(project, region, standard).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
}

func TestAFourthGenerationMachineHasAsManyDisksAsItsCPUsAllow(t *testing.T) {
	c := open(t, options(t))
	if err := c.mock.EnsureInstance(project, zone, "node", "c4a-standard-1"); err != nil {
		t.Fatal(err)
	}
	// 7, and the place of the boot disk.
	for i := range 9 {
		name := fmt.Sprintf("disk-%d", i)
		c.makeHyperdisk(name, "hyperdisk-balanced", "")
		operation, err := c.attach("node", name, "READ_WRITE").Do()
		if i == 8 {
			c.refused(err, http.StatusForbidden, "limitExceeded")
			continue
		}
		c.done(operation, err)
	}
	if machine, err := c.MachineTypes.Get(project, zone, "c4a-standard-1").Do(); err != nil || machine.MaximumPersistentDisks != 8 {
		t.Errorf("the machine type is %+v %v", machine, err)
	}
}

func TestAMachineTypeThatIsNotThereIsRefused(t *testing.T) {
	c := open(t, options(t))
	_, err := c.Instances.Insert(project, zone, &compute.Instance{Name: "node", MachineType: "zones/" + zone + "/machineTypes/e3-huge"}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = c.MachineTypes.Get(project, zone, "n4-standard-3").Do()
	c.refused(err, http.StatusNotFound, "notFound")
	if err := c.mock.EnsureInstance(project, zone, "node", "e2"); err == nil {
		t.Error("an instance was made with it")
	}
}
