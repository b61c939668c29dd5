package gcemock_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/api/compute/v1"
)

func TestACopyHasTheContentOfItsSource(t *testing.T) {
	set := options(t)
	c := open(t, set)
	content := func(id uint64) string { return filepath.Join(set.Folder, "images", itoa(id)+".img") }
	disk := c.makeDisk("data")
	writeAt(t, content(disk.Id), 5<<30, "written")
	c.done(c.Images.Insert(project, &compute.Image{Name: "image", SourceDisk: diskLink("data"), Family: "tools"}).Do())
	c.done(c.InstantSnapshots.Insert(project, zone, &compute.InstantSnapshot{Name: "instant", SourceDisk: diskLink("data")}).Do())
	c.done(c.Snapshots.Insert(project, &compute.Snapshot{Name: "copy", SourceInstantSnapshot: "zones/" + zone + "/instantSnapshots/instant"}).Do())
	c.done(c.Images.Insert(project, &compute.Image{Name: "image-of-copy", SourceSnapshot: "global/snapshots/copy"}).Do())
	clones := []*compute.Disk{
		{Name: "from-disk", SourceDisk: diskLink("data"), SizeGb: 20},
		{Name: "from-image", SourceImage: "global/images/image"},
		{Name: "from-family", SourceImage: "global/images/family/tools"},
		{Name: "from-instant", SourceInstantSnapshot: "zones/" + zone + "/instantSnapshots/instant"},
		{Name: "from-snapshot", SourceSnapshot: "global/snapshots/copy"},
		{Name: "from-image-of-copy", SourceImage: "global/images/image-of-copy"},
	}
	for _, clone := range clones {
		c.done(c.Disks.Insert(project, zone, clone).Do())
	}
	writeAt(t, content(disk.Id), 5<<30, "changed")
	for _, clone := range clones {
		made := c.disk(clone.Name)
		if text := readAt(t, content(made.Id), 5<<30, 7); text != "written" || made.SizeGb != max(clone.SizeGb, 10) {
			t.Errorf("%s holds %q, of %d GB", clone.Name, text, made.SizeGb)
		}
	}
	if made := c.disk("from-disk"); made.SourceDisk != disk.SelfLink || made.SourceDiskId != itoa(disk.Id) {
		t.Errorf("a clone names its source %s %s", made.SourceDisk, made.SourceDiskId)
	}
}

func TestARegionalDiskIsClonedFromAZoneOfIts(t *testing.T) {
	c := open(t, options(t))
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10, Type: "zones/" + zone + "/diskTypes/pd-balanced"}).Do())
	clone := regionalDisk("clone")
	clone.SourceDisk = diskLink("data")
	c.done(c.RegionDisks.Insert(project, region, clone).Do())
	_, err := c.Disks.Insert(project, zone, &compute.Disk{
		Name: "back", Type: "zones/" + zone + "/diskTypes/pd-balanced", SourceDisk: "regions/" + region + "/disks/clone",
	}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
}

func TestASourceThatDoesNotFitIsRefused(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	c.makeDisk("data")
	c.done(c.Disks.CreateSnapshot(project, zone, "data", &compute.Snapshot{Name: "copy"}).Do())
	for name, disk := range map[string]*compute.Disk{
		"none":         {Name: "a", SourceDisk: diskLink("none")},
		"smaller":      {Name: "a", SourceDisk: diskLink("data"), SizeGb: 9},
		"another type": {Name: "a", SourceDisk: diskLink("data"), Type: "zones/" + zone + "/diskTypes/pd-ssd"},
		"two":          {Name: "a", SourceDisk: diskLink("data"), SourceSnapshot: "global/snapshots/copy"},
		"no family":    {Name: "a", SourceImage: "global/images/family/none"},
		"no instant":   {Name: "a", SourceInstantSnapshot: "zones/" + zone + "/instantSnapshots/none"},
	} {
		t.Log(name)
		_, err := c.Disks.Insert(project, zone, disk).Do()
		c.refused(err, http.StatusBadRequest, "invalid")
	}
	_, err := c.Disks.Insert(project, other, &compute.Disk{Name: "a", SourceDisk: diskLink("data")}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	_, err = c.Images.Insert(project, &compute.Image{Name: "image", SourceDisk: diskLink("data")}).Do()
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
	c.done(c.Images.Insert(project, &compute.Image{Name: "image", SourceDisk: diskLink("data")}).ForceCreate(true).Do())
}

func TestAnInstantSnapshotGoesWithItsDisk(t *testing.T) {
	set := options(t)
	c := open(t, set)
	c.makeDisk("data")
	c.done(c.InstantSnapshots.Insert(project, zone, &compute.InstantSnapshot{Name: "instant", SourceDisk: diskLink("data")}).Do())
	c.done(c.Disks.Delete(project, zone, "data").Do())
	_, err := c.InstantSnapshots.Get(project, zone, "instant").Do()
	c.refused(err, http.StatusNotFound, "notFound")
	if left, err := os.ReadDir(filepath.Join(set.Folder, "images")); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestAStoragePoolHasDisksUpToItsSize(t *testing.T) {
	c := open(t, options(t))
	c.done(c.StoragePools.Insert(project, zone, &compute.StoragePool{
		Name: "pool", StoragePoolType: "zones/" + zone + "/storagePoolTypes/hyperdisk-balanced", PoolProvisionedCapacityGb: 10240,
	}).Do())
	insert := func(name, kind string, sizeGb int64) (*compute.Operation, error) {
		return c.Disks.Insert(project, zone, &compute.Disk{
			Name: name, SizeGb: sizeGb, Type: "zones/" + zone + "/diskTypes/" + kind, StoragePool: "zones/" + zone + "/storagePools/pool",
		}).Do()
	}
	c.done(insert("first", "hyperdisk-balanced", 10000))
	_, err := insert("second", "hyperdisk-balanced", 241)
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = c.Disks.Resize(project, zone, "first", &compute.DisksResizeRequest{SizeGb: 10241}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(c.Disks.Resize(project, zone, "first", &compute.DisksResizeRequest{SizeGb: 10240}).Do())
	_, err = insert("third", "pd-ssd", 10)
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = c.StoragePools.Delete(project, zone, "pool").Do()
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
	c.done(c.Disks.Delete(project, zone, "first").Do())
	c.done(c.StoragePools.Delete(project, zone, "pool").Do())
}

func TestADiskThatGoesWithItsInstanceCanBeSetToStay(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	for _, name := range []string{"stays", "goes"} {
		c.makeDisk(name)
		c.done(c.Instances.AttachDisk(project, zone, "node", &compute.AttachedDisk{
			Source: diskLink(name), DeviceName: name, AutoDelete: name == "stays",
		}).Do())
		c.done(c.Instances.SetDiskAutoDelete(project, zone, "node", name == "goes", name).Do())
	}
	_, err := c.Instances.SetDiskAutoDelete(project, zone, "node", true, "none").Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(c.Instances.Delete(project, zone, "node").Do())
	if disk := c.disk("stays"); len(disk.Users) > 0 {
		t.Errorf("it is %+v", disk)
	}
	_, err = c.Disks.Get(project, zone, "goes").Do()
	c.refused(err, http.StatusNotFound, "notFound")
}
