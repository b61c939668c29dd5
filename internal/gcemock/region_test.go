package gcemock_test

import (
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

func (c *cloud) regionDisk(name string) *compute.Disk {
	c.Helper()
	disk, err := c.RegionDisks.Get(project, region, name).Do()
	if err != nil {
		c.Fatal(err)
	}
	return disk
}

func TestAZonalAndARegionalDiskCanHaveOneName(t *testing.T) {
	c := open(t, options(t))
	zonal := c.makeDisk("data")
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("data")).Do())
	_, err := c.RegionDisks.Insert(project, region, regionalDisk("data")).Do()
	c.refused(err, http.StatusConflict, "alreadyExists")
	list, err := c.Disks.AggregatedList(project).Do()
	if err != nil {
		t.Fatal(err)
	}
	for scope, id := range map[string]uint64{"zones/" + zone: zonal.Id, "regions/" + region: c.regionDisk("data").Id} {
		if here := list.Items[scope].Disks; len(here) != 1 || here[0].Id != id {
			t.Errorf("%s has %+v, want disk %d", scope, here, id)
		}
	}
	c.done(c.Disks.Delete(project, zone, "data").Do())
	c.regionDisk("data")
	_, err = c.Disks.Get(project, zone, "data").Do()
	c.refused(err, http.StatusNotFound, "notFound")
}

func TestARegionalDiskNamesItsRegionAndNoZone(t *testing.T) {
	c := open(t, options(t))
	requested := regionalDisk("data")
	requested.ReplicaZones[0] = "https://www.googleapis.com/compute/v1/projects/" + project + "/" + requested.ReplicaZones[0]
	c.done(c.RegionDisks.Insert(project, region, requested).Do())
	disk, base := c.regionDisk("data"), c.url+"/compute/v1/projects/"+project
	if disk.Zone != "" || disk.Region != base+"/regions/"+region || disk.SelfLink != disk.Region+"/disks/data" {
		t.Errorf("it is in zone %q, region %q, at %s", disk.Zone, disk.Region, disk.SelfLink)
	}
	if want := []string{base + "/zones/" + zone, base + "/zones/" + other}; !slices.Equal(disk.ReplicaZones, want) {
		t.Errorf("its replicas are in %v", disk.ReplicaZones)
	}
	if disk.Type != disk.Region+"/diskTypes/pd-balanced" {
		t.Errorf("its type is %s", disk.Type)
	}
}

func TestOnlySomeTypesCanBeRegional(t *testing.T) {
	c := open(t, options(t))
	insert := func(kind string) (*compute.Operation, error) {
		disk := regionalDisk(path.Base(kind))
		disk.SizeGb, disk.Type = 3000, kind
		return c.RegionDisks.Insert(project, region, disk).Do()
	}
	types := "regions/" + region + "/diskTypes/"
	for _, kind := range []string{
		"pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-throughput", "hyperdisk-ml", "none",
	} {
		_, err := insert(types + kind)
		c.refused(err, http.StatusBadRequest, "invalid")
		_, err = c.RegionDiskTypes.Get(project, region, kind).Do()
		c.refused(err, http.StatusNotFound, "notFound")
	}
	_, err := insert("zones/" + zone + "/diskTypes/pd-balanced")
	c.refused(err, http.StatusBadRequest, "invalid")
	regional := []string{"hyperdisk-balanced-high-availability", "pd-balanced", "pd-ssd", "pd-standard"}
	for _, kind := range regional {
		c.done(insert(types + kind))
	}
	list, err := c.RegionDiskTypes.List(project, region).Do()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, one := range list.Items {
		listed = append(listed, one.Name)
	}
	if !slices.Equal(listed, regional) {
		t.Errorf("the region lists %v", listed)
	}
}

func TestAnOperationOfARegionalDiskIsOfItsRegion(t *testing.T) {
	c := open(t, options(t))
	operation := c.done(c.RegionDisks.Insert(project, region, regionalDisk("data")).Do())
	base := c.url + "/compute/v1/projects/" + project + "/regions/" + region
	if operation.Zone != "" || operation.Region != base || operation.SelfLink != base+"/operations/"+operation.Name ||
		operation.TargetLink != base+"/disks/data" {
		t.Errorf("it is %+v", operation)
	}
	_, err := c.ZoneOperations.Get(project, zone, operation.Name).Do()
	c.refused(err, http.StatusNotFound, "notFound")
	zonal := c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).Do())
	global := c.done(c.RegionDisks.CreateSnapshot(project, region, "data", &compute.Snapshot{Name: "copy"}).Do())
	list, err := c.GlobalOperations.AggregatedList(project).Filter("operationType = insert").Do()
	if err != nil {
		t.Fatal(err)
	}
	for scope, name := range map[string]string{"regions/" + region: operation.Name, "zones/" + zone: zonal.Name} {
		if here := list.Items[scope].Operations; len(here) != 1 || here[0].Name != name {
			t.Errorf("%s has the operations %+v", scope, here)
		}
	}
	if here := list.Items["global"]; len(here.Operations) != 0 || here.Warning == nil {
		t.Errorf("all that is global has %+v", here)
	}
	if global.Region != base {
		t.Errorf("the operation of a snapshot of the disk is in region %q", global.Region)
	}
}

func TestARequestForARegionalDiskSentAgainStartsNothing(t *testing.T) {
	set := options(t)
	c := open(t, set)
	insert := func(c *cloud, name string) (*compute.Operation, error) {
		return c.RegionDisks.Insert(project, region, regionalDisk(name)).RequestId(firstRequest).Do()
	}
	first := c.done(insert(c, "data"))
	if again, err := insert(c, "data"); err != nil || again.Name != first.Name || again.Region == "" {
		t.Errorf("sent again it is %+v %v", again, err)
	}
	c.stop()

	c = open(t, set)
	if again, err := insert(c, "data"); err != nil || again.Name != first.Name {
		t.Errorf("after a restart it is %+v %v", again, err)
	}
	_, err := insert(c, "other")
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).RequestId(firstRequest).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
}

func TestARegionalDiskIsThereAfterARestart(t *testing.T) {
	set := options(t)
	c := open(t, set)
	c.makeInstance("node")
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("data")).Do())
	c.done(c.Instances.AttachDisk(project, zone, "node", &compute.AttachedDisk{Source: regionDiskLink("data"), DeviceName: "data"}).Do())
	before := c.regionDisk("data")
	c.stop()

	wired := newSockets(t)
	set.Attacher = wired
	c = open(t, set)
	wired.has("node/data")
	after := c.regionDisk("data")
	if after.Id != before.Id || len(after.Users) != 1 || len(after.ReplicaZones) != 2 {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
}

func TestLabelsOfARegionalDiskNeedTheirFingerprint(t *testing.T) {
	c := open(t, options(t))
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("data")).Do())
	set := func(fingerprint, team string) (*compute.Operation, error) {
		return c.RegionDisks.SetLabels(project, region, "data", &compute.RegionSetLabelsRequest{
			Labels: map[string]string{"team": team}, LabelFingerprint: fingerprint,
		}).Do()
	}
	before := c.regionDisk("data").LabelFingerprint
	c.done(set(before, "storage"))
	_, err := set(before, "network")
	c.refused(err, http.StatusPreconditionFailed, "conditionNotMet")
	if team := c.regionDisk("data").Labels["team"]; team != "storage" {
		t.Errorf("its team is %s", team)
	}
}

func TestRegionalDisksAreListedByPageAndFilter(t *testing.T) {
	c := open(t, options(t))
	c.makeDisk("zonal")
	for _, name := range []string{"a", "b", "c"} {
		c.done(c.RegionDisks.Insert(project, region, regionalDisk(name)).Do())
	}
	list := c.RegionDisks.List(project, region).Filter("replicaZones:" + other + " AND name != b").MaxResults(1)
	first, err := list.Do()
	if err != nil || len(first.Items) != 1 || first.Items[0].Name != "a" || first.NextPageToken == "" {
		t.Fatalf("the first page is %+v %v", first, err)
	}
	second, err := list.PageToken(first.NextPageToken).Do()
	if err != nil || len(second.Items) != 1 || second.Items[0].Name != "c" || second.NextPageToken != "" {
		t.Errorf("the second page is %+v %v", second, err)
	}
}

func TestFaultsAreOfRegionalDisksToo(t *testing.T) {
	c := open(t, options(t))
	insert := func() (*compute.Operation, error) {
		return c.RegionDisks.Insert(project, region, regionalDisk("data")).RequestId(firstRequest).Do()
	}
	c.inject(fault.Fault{Method: "regionDisks.insert", Count: 1, Status: http.StatusTooManyRequests})
	c.makeDisk("data")
	_, err := insert()
	c.refused(err, http.StatusTooManyRequests, "rateLimitExceeded")
	c.inject(fault.Fault{Method: "regionDisks.insert", Count: 1, Lost: true})
	if _, err := insert(); err == nil {
		t.Error("the client hears of it")
	}
	c.done(insert())
	c.inject(fault.Fault{Method: "regionDisks.resize", Count: 1, Operation: "INTERNAL_ERROR"})
	if ended := c.ended(c.RegionDisks.Resize(project, region, "data", &compute.RegionDisksResizeRequest{SizeGb: 20}).Do()); ended.Error == nil {
		t.Error("a resize ended well")
	}
	if disk := c.regionDisk("data"); disk.SizeGb != 10 {
		t.Errorf("it has %d GB", disk.SizeGb)
	}
}

func TestARegionalDiskIsCopiedThroughSnapshots(t *testing.T) {
	set := options(t)
	c := open(t, set)
	content := func(id uint64) string { return filepath.Join(set.Folder, "images", itoa(id)+".img") }
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("data")).Do())
	writeAt(t, content(c.regionDisk("data").Id), 5<<30, "written")
	c.done(c.Snapshots.Insert(project, &compute.Snapshot{Name: "one", SourceDisk: "regions/" + region + "/disks/data"}).Do())
	c.done(c.RegionDisks.CreateSnapshot(project, region, "data", &compute.Snapshot{Name: "two"}).Do())
	for _, name := range []string{"one", "two"} {
		snapshot, err := c.Snapshots.Get(project, name).Do()
		if err != nil || snapshot.SourceDisk != c.regionDisk("data").SelfLink {
			t.Errorf("the source of %s is %+v: %v", name, snapshot, err)
		}
		restored := regionalDisk(name)
		restored.SourceSnapshot = "global/snapshots/" + name
		c.done(c.RegionDisks.Insert(project, region, restored).Do())
		c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: name, SourceSnapshot: restored.SourceSnapshot}).Do())
		for _, id := range []uint64{c.regionDisk(name).Id, c.disk(name).Id} {
			if text := readAt(t, content(id), 5<<30, 7); text != "written" {
				t.Errorf("a disk from %s holds %q", name, text)
			}
		}
	}
}

func TestARegionalDiskIsNotClonedFromAZoneWithoutItsReplica(t *testing.T) {
	set := options(t)
	set.Zones = append(set.Zones, "europe-west3-c")
	c := open(t, set)
	c.done(c.Disks.Insert(project, "europe-west3-c", &compute.Disk{
		Name: "data", SizeGb: 10, Type: "zones/europe-west3-c/diskTypes/pd-balanced",
	}).Do())
	clone := regionalDisk("clone")
	clone.SourceDisk = "zones/europe-west3-c/disks/data"
	_, err := c.RegionDisks.Insert(project, region, clone).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
}
