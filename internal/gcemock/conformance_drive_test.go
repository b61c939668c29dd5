package gcemock_test

import (
	"google.golang.org/api/compute/v1"
)

const region = "europe-west3"

// driveCatalog reads what was always there.
func driveCatalog(c *cloud, try func(any, error)) {
	c.Helper()
	try(c.Projects.Get(project).Do())
	try(c.Regions.List(project).Do())
	try(c.Regions.Get(project, region).Do())
	try(c.Zones.List(project).Do())
	try(c.Zones.Get(project, zone).Do())
	try(c.DiskTypes.List(project, zone).Do())
	try(c.DiskTypes.AggregatedList(project).Do())
	try(c.DiskTypes.Get(project, zone, "pd-ssd").Do())
	try(c.RegionDiskTypes.List(project, region).Do())
	try(c.RegionDiskTypes.Get(project, region, "pd-ssd").Do())
	try(c.MachineTypes.List(project, zone).MaxResults(3).Do())
	try(c.MachineTypes.AggregatedList(project).MaxResults(3).Do())
	try(c.MachineTypes.Get(project, zone, "e2-micro").Do())
	try(c.StoragePoolTypes.List(project, zone).Do())
	try(c.StoragePoolTypes.Get(project, zone, "hyperdisk-balanced").Do())
}

func driveOperations(c *cloud, try func(any, error)) {
	c.Helper()
	operations, err := c.ZoneOperations.List(project, zone).OrderBy("creationTimestamp desc").Do()
	try(operations, err)
	try(c.ZoneOperations.Get(project, zone, operations.Items[0].Name).Do())
	regional, err := c.RegionOperations.List(project, region).Do()
	try(regional, err)
	try(c.RegionOperations.Get(project, region, regional.Items[0].Name).Do())
	try(c.GlobalOperations.AggregatedList(project).Do())
	global, err := c.GlobalOperations.List(project).Do()
	try(global, err)
	try(c.GlobalOperations.Get(project, global.Items[0].Name).Do())
}

// regionalDisk is a regional disk in both zones.
func regionalDisk(name string) *compute.Disk {
	return &compute.Disk{
		Name: name, SizeGb: 10, Type: "regions/" + region + "/diskTypes/pd-balanced",
		ReplicaZones: []string{"zones/" + zone, "zones/" + other},
	}
}

func driveRegionDisks(c *cloud, try func(any, error)) {
	c.Helper()
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("gone")).Do())
	c.done(c.RegionDisks.Delete(project, region, "gone").Do())
	c.done(c.RegionDisks.Insert(project, region, regionalDisk("both")).Do())
	c.done(c.RegionDisks.Resize(project, region, "both", &compute.RegionDisksResizeRequest{SizeGb: 20}).Do())
	c.done(c.RegionDisks.Update(project, region, "both", &compute.Disk{SizeGb: 30}).Paths("sizeGb").Do())
	disk, err := c.RegionDisks.Get(project, region, "both").Do()
	try(disk, err)
	c.done(c.RegionDisks.SetLabels(project, region, "both", &compute.RegionSetLabelsRequest{
		Labels: map[string]string{"team": "storage"}, LabelFingerprint: disk.LabelFingerprint,
	}).Do())
	c.done(c.RegionDisks.CreateSnapshot(project, region, "both", &compute.Snapshot{Name: "of-both"}).Do())
	c.done(c.Instances.AttachDisk(project, zone, "node", &compute.AttachedDisk{Source: disk.SelfLink, DeviceName: "both"}).Do())
	c.done(c.Instances.SetDiskAutoDelete(project, zone, "node", true, "both").Do())
	try(c.RegionDisks.List(project, region).Do())
}

func driveCopies(c *cloud, try func(any, error)) {
	c.Helper()
	for _, name := range []string{"image", "gone-image"} {
		c.done(c.Images.Insert(project, &compute.Image{Name: name, SourceDisk: diskLink("kept"), Family: "tools"}).ForceCreate(true).Do())
	}
	c.done(c.Images.Delete(project, "gone-image").Do())
	try(c.Images.List(project).Do())
	try(c.Images.Get(project, "image").Do())
	try(c.Images.GetFromFamily(project, "tools").Do())
	driveLabels(c, try)
	for _, name := range []string{"instant", "gone-instant"} {
		c.done(c.InstantSnapshots.Insert(project, zone, &compute.InstantSnapshot{Name: name, SourceDisk: diskLink("kept")}).Do())
	}
	c.done(c.InstantSnapshots.Delete(project, zone, "gone-instant").Do())
	try(c.InstantSnapshots.List(project, zone).Do())
	instant, err := c.InstantSnapshots.Get(project, zone, "instant").Do()
	try(instant, err)
	c.done(c.InstantSnapshots.SetLabels(project, zone, "instant", &compute.ZoneSetLabelsRequest{
		Labels: map[string]string{"team": "storage"}, LabelFingerprint: instant.LabelFingerprint,
	}).Do())
	balanced := "zones/" + zone + "/diskTypes/hyperdisk-balanced"
	for _, disk := range []*compute.Disk{
		{Name: "from-image", SourceImage: "global/images/family/tools"},
		{Name: "from-instant", SourceInstantSnapshot: "zones/" + zone + "/instantSnapshots/instant"},
		{Name: "clone", SourceDisk: diskLink("kept"), Type: balanced},
	} {
		c.done(c.Disks.Insert(project, zone, disk).Do())
		try(c.Disks.Get(project, zone, disk.Name).Do())
	}
}

func driveLabels(c *cloud, try func(any, error)) {
	c.Helper()
	team := map[string]string{"team": "storage"}
	image, err := c.Images.Get(project, "image").Do()
	try(image, err)
	c.done(c.Images.SetLabels(project, "image", &compute.GlobalSetLabelsRequest{Labels: team, LabelFingerprint: image.LabelFingerprint}).Do())
	snapshot, err := c.Snapshots.Get(project, "of-both").Do()
	try(snapshot, err)
	c.done(c.Snapshots.SetLabels(project, "of-both", &compute.GlobalSetLabelsRequest{Labels: team, LabelFingerprint: snapshot.LabelFingerprint}).Do())
}

func drivePools(c *cloud, try func(any, error)) {
	c.Helper()
	for _, name := range []string{"pool", "gone-pool"} {
		c.done(c.StoragePools.Insert(project, zone, &compute.StoragePool{
			Name: name, StoragePoolType: "zones/" + zone + "/storagePoolTypes/hyperdisk-balanced", PoolProvisionedCapacityGb: 10240,
		}).Do())
	}
	c.done(c.StoragePools.Delete(project, zone, "gone-pool").Do())
	c.done(c.Disks.Insert(project, zone, &compute.Disk{
		Name: "pooled", SizeGb: 10, Type: "zones/" + zone + "/diskTypes/hyperdisk-balanced", StoragePool: "zones/" + zone + "/storagePools/pool",
	}).Do())
	try(c.StoragePools.List(project, zone).Do())
	try(c.StoragePools.Get(project, zone, "pool").Do())
	try(c.StoragePools.ListDisks(project, zone, "pool").Do())
}
