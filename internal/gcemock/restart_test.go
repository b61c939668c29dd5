package gcemock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestWhatIsThereIsThereAfterARestart(t *testing.T) {
	set := options(t)
	c := open(t, set)
	c.makeInstance("node")
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10, Labels: map[string]string{"a": "b"}}).Do())
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	before := c.disk("data")
	c.stop()

	c = open(t, set)
	after := c.disk("data")
	if after.Id != before.Id || after.Labels["a"] != "b" || after.LabelFingerprint != before.LabelFingerprint || len(after.Users) != 1 {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
	if disks := c.instance("node").Disks; len(disks) != 1 || disks[0].Source != after.SelfLink {
		t.Errorf("the instance has %+v", disks)
	}
}

func TestOneFolderHasOneServer(t *testing.T) {
	set := options(t)
	open(t, set)
	if second, err := gcemock.New(t.Context(), set); err == nil {
		t.Errorf("there is a second: %v", second.Close())
	}
}

func TestOperationsUnderWayGoOnAfterARestart(t *testing.T) {
	set := options(t)
	set.Latency = time.Hour
	c := open(t, set)
	operation, err := insertData(c)
	if err != nil {
		t.Fatal(err)
	}
	c.stop()

	set.Latency = quick
	c = open(t, set)
	c.done(c.ZoneOperations.Get(project, zone, operation.Name).Do())
	if status := c.disk("data").Status; status != "READY" {
		t.Errorf("the disk is %s", status)
	}
}

// A copy of the folder is what a crash at that moment would have left.
func TestACrashAtAnyMomentLeavesWhatCanGoOn(t *testing.T) {
	set := options(t)
	c := open(t, set)
	c.makeInstance("one")
	c.makeInstance("two")
	copies := []string{}
	for round := range 3 {
		name := fmt.Sprintf("disk-%d", round)
		insert, err := c.Disks.Insert(project, zone, &compute.Disk{Name: name, SizeGb: 10}).Do()
		copies = append(copies, copyFolder(t, set.Folder))
		c.done(insert, err)
		first, firstErr := c.attach("one", name, "READ_WRITE").Do()
		second, secondErr := c.attach("two", name, "READ_WRITE").Do()
		copies = append(copies, copyFolder(t, set.Folder), copyFolder(t, set.Folder))
		c.ended(first, firstErr)
		if secondErr == nil { // else the first was done before it was requested
			c.ended(second, secondErr)
		}
		detach, err := c.detach(filepath.Base(c.disk(name).Users[0]), name).Do()
		copies = append(copies, copyFolder(t, set.Folder))
		c.done(detach, err)
	}
	for _, folder := range copies {
		set.Folder = folder
		crashed := open(t, set)
		crashed.allEnd()
		crashed.checkInvariants()
		crashed.stop()
	}
}

func TestHalfALineIsAsIfItHadNotBeenWritten(t *testing.T) {
	set := options(t)
	c := open(t, set)
	c.makeDisk("data")
	c.stop()
	journal, err := os.OpenFile(filepath.Join(set.Folder, "state.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.WriteString(`{"disks":{"projects/demo/zones/` + zone + `/disks/data":nu`); err != nil {
		t.Fatal(err)
	}
	journal.Close()
	for range 2 {
		c = open(t, set)
		c.disk("data")
		c.stop()
	}
}

// copyFolder copies the state; the images are empty, and made again.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	text, err := os.ReadFile(filepath.Join(from, "state.jsonl"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "state.jsonl"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// allEnd waits until no operation is under way.
func (c *cloud) allEnd() {
	c.Helper()
	list, err := c.ZoneOperations.List(project, zone).Do()
	if err != nil {
		c.Fatal(err)
	}
	for _, operation := range list.Items {
		c.ended(operation, nil)
	}
}

// checkInvariants checks what must hold whatever happened.
func (c *cloud) checkInvariants() {
	c.Helper()
	disks, err := c.Disks.List(project, zone).Do()
	if err != nil {
		c.Fatal(err)
	}
	instances, err := c.Instances.List(project, zone).Do()
	if err != nil {
		c.Fatal(err)
	}
	users := map[string][]string{}
	writers := map[string]int{}
	for _, instance := range instances.Items {
		for _, attached := range instance.Disks {
			users[attached.Source] = append(users[attached.Source], instance.SelfLink)
			if attached.Mode == "READ_WRITE" {
				writers[attached.Source]++
			}
		}
	}
	for _, disk := range disks.Items {
		writes := writers[disk.SelfLink]
		if writes > 1 || writes == 1 && len(disk.Users) > 1 {
			c.Errorf("%s has %d writers among %v", disk.Name, writes, disk.Users)
		}
		if len(disk.Users) != len(users[disk.SelfLink]) {
			c.Errorf("%s says that %v use it, but %v do", disk.Name, disk.Users, users[disk.SelfLink])
		}
		delete(users, disk.SelfLink)
	}
	if len(users) > 0 {
		c.Errorf("disks were deleted while they were attached: %v", users)
	}
}
