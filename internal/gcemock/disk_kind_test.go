package gcemock_test

import (
	"net/http"
	"testing"

	"google.golang.org/api/compute/v1"
)

func TestADiskHasThePerformanceThatItsTypeAndSizeAllow(t *testing.T) {
	c := open(t, options(t))
	for name, test := range map[string]struct {
		kind             string
		sizeGb           int64
		iops, throughput int64
		// What it has; 0: it is refused.
		wantIops, wantThroughput int64
	}{
		"hyperdisk-balanced by default":        {"hyperdisk-balanced", 100, 0, 0, 3600, 290},
		"hyperdisk-balanced with less":         {"hyperdisk-balanced", 100, 2999, 0, 0, 0},
		"hyperdisk-balanced with the least":    {"hyperdisk-balanced", 100, 3000, 140, 3000, 140},
		"hyperdisk-balanced with too much":     {"hyperdisk-balanced", 1000, 160_001, 0, 0, 0},
		"hyperdisk-balanced that is too small": {"hyperdisk-balanced", 10, 5001, 0, 0, 0},
		"hyperdisk-balanced that is smallest":  {"hyperdisk-balanced", 4, 2000, 0, 2000, 146},
		"its throughput by IOPS":               {"hyperdisk-balanced", 100, 3000, 751, 0, 0},
		"its throughput within IOPS":           {"hyperdisk-balanced", 100, 3000, 750, 3000, 750},
		"hyperdisk-extreme by size":            {"hyperdisk-extreme", 64, 76_801, 0, 0, 0},
		"hyperdisk-extreme with too little":    {"hyperdisk-extreme", 1000, 1999, 0, 0, 0},
		"hyperdisk-extreme has no throughput":  {"hyperdisk-extreme", 64, 0, 100, 0, 0},
		"hyperdisk-throughput by size":         {"hyperdisk-throughput", 2048, 0, 181, 0, 0},
		"hyperdisk-throughput has no IOPS":     {"hyperdisk-throughput", 2048, 3000, 0, 0, 0},
		"pd-extreme with less":                 {"pd-extreme", 500, 9999, 0, 0, 0},
		"pd-extreme with more":                 {"pd-extreme", 500, 120_001, 0, 0, 0},
		"pd-extreme":                           {"pd-extreme", 500, 10_000, 0, 10_000, 0},
		"pd-ssd":                               {"pd-ssd", 10, 3000, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			here := *c
			here.T = t
			operation, err := c.Disks.Insert(project, zone, &compute.Disk{
				Name: "data", Type: "zones/" + zone + "/diskTypes/" + test.kind, SizeGb: test.sizeGb,
				ProvisionedIops: test.iops, ProvisionedThroughput: test.throughput,
			}).Do()
			if test.wantIops == 0 && test.wantThroughput == 0 {
				here.refused(err, http.StatusBadRequest, "invalid")
				return
			}
			here.done(operation, err)
			if disk := here.disk("data"); disk.ProvisionedIops != test.wantIops || disk.ProvisionedThroughput != test.wantThroughput {
				t.Errorf("it has %d IOPS and %d MiB/s", disk.ProvisionedIops, disk.ProvisionedThroughput)
			}
			here.done(c.Disks.Delete(project, zone, "data").Do())
		})
	}
}

func TestADiskKeepsWhatIsNotUpdated(t *testing.T) {
	c := open(t, options(t))
	c.makeHyperdisk("data", "hyperdisk-balanced", "")
	c.done(c.Disks.Update(project, zone, "data", &compute.Disk{SizeGb: 200, ProvisionedIops: 5000}).Paths("sizeGb", "provisionedIops").Do())
	disk := c.disk("data")
	if disk.SizeGb != 200 || disk.ProvisionedIops != 5000 || disk.ProvisionedThroughput != 290 || disk.AccessMode != "READ_WRITE_SINGLE" {
		t.Errorf("it is %+v", disk)
	}
	c.done(c.Disks.Update(project, zone, "data", &compute.Disk{ProvisionedThroughput: 300}).UpdateMask("provisionedThroughput").Do())
	if disk := c.disk("data"); disk.ProvisionedThroughput != 300 || disk.ProvisionedIops != 5000 {
		t.Errorf("it is %+v", disk)
	}
	for _, wrong := range []*compute.DisksUpdateCall{
		c.Disks.Update(project, zone, "data", &compute.Disk{SizeGb: 300}),
		c.Disks.Update(project, zone, "data", &compute.Disk{SizeGb: 100}).Paths("sizeGb"),
		c.Disks.Update(project, zone, "data", &compute.Disk{ProvisionedIops: 1}).Paths("provisionedIops"),
	} {
		_, err := wrong.Do()
		c.refused(err, http.StatusBadRequest, "invalid")
	}
}

func TestAnExtremeDiskGrowsWithItsIOPS(t *testing.T) {
	c := open(t, options(t))
	c.done(c.Disks.Insert(project, zone, &compute.Disk{
		Name: "data", Type: "zones/" + zone + "/diskTypes/hyperdisk-extreme", SizeGb: 64, ProvisionedIops: 128,
	}).Do())
	_, err := c.Disks.Resize(project, zone, "data", &compute.DisksResizeRequest{SizeGb: 1000}).Do()
	c.refused(err, http.StatusBadRequest, "invalid")
	c.done(c.Disks.Update(project, zone, "data", &compute.Disk{SizeGb: 1000, ProvisionedIops: 2000}).Paths("sizeGb,provisionedIops").Do())
}
