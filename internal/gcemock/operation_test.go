package gcemock_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

const (
	firstRequest  = "0a7e2f70-6a3c-4d0f-9b8e-2f2f0f1f7a01"
	secondRequest = "0a7e2f70-6a3c-4d0f-9b8e-2f2f0f1f7a02"
)

func TestAnOperationGoesItsWay(t *testing.T) {
	slow := options(t)
	slow.Latency = 100 * time.Millisecond
	c := open(t, slow)
	c.inject(fault.Fault{Method: "disks.insert", Stuck: true}) // until all of it was seen
	begun := time.Now()
	operation, err := c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).Do()
	if err != nil || operation.Status != "PENDING" || operation.StartTime != "" {
		t.Fatalf("it begins as %+v %v", operation, err)
	}
	if status := c.disk("data").Status; status != "CREATING" {
		t.Errorf("the disk is %s while the operation is pending", status)
	}
	operation = c.awaitStatus(operation, "PENDING", "RUNNING")
	c.removeFaults()
	if operation = c.awaitStatus(operation, "RUNNING", "DONE"); time.Since(begun) < slow.Latency {
		t.Errorf("it took only %s", time.Since(begun))
	}
	disk := c.disk("data")
	if disk.Status != "READY" || operation.TargetId != disk.Id || operation.TargetLink != disk.SelfLink || operation.Progress != 100 {
		t.Errorf("it ended as %+v, the disk is %+v", operation, disk)
	}
	image, err := os.Stat(filepath.Join(slow.Folder, "images", itoa(disk.Id)+".img"))
	if err != nil || image.Size() != 10<<30 {
		t.Errorf("the image is %v %v", image, err)
	}
}

// awaitStatus asks for an operation until it has left one status, for the other.
func (c *cloud) awaitStatus(operation *compute.Operation, from, to string) *compute.Operation {
	c.Helper()
	for operation.Status == from {
		var err error
		if operation, err = c.ZoneOperations.Get(project, zone, operation.Name).Do(); err != nil {
			c.Fatal(err)
		}
	}
	if operation.Status != to {
		c.Fatalf("it is %s after %s, not %s", operation.Status, from, to)
	}
	return operation
}

func TestARequestSentAgainStartsNothing(t *testing.T) {
	c := open(t, options(t))
	insert := func(name, id string) (*compute.Operation, error) {
		return c.Disks.Insert(project, zone, &compute.Disk{Name: name, SizeGb: 10}).RequestId(id).Do()
	}
	first := c.done(insert("data", firstRequest))
	again, err := insert("data", firstRequest)
	if err != nil || again.Name != first.Name || again.ClientOperationId != firstRequest {
		t.Errorf("sent again it is %+v %v, not %s", again, err, first.Name)
	}
	_, err = insert("data", secondRequest)
	c.refused(err, http.StatusConflict, "alreadyExists")
	_, err = insert("other", firstRequest)
	c.refused(err, http.StatusBadRequest, "invalid")
	_, err = insert("other", "00000000-0000-0000-0000-000000000000")
	c.refused(err, http.StatusBadRequest, "invalid")
}

func TestARequestIsRememberedForADayAndOverRestarts(t *testing.T) {
	now := time.Now()
	set := options(t)
	set.Now = func() time.Time { return now }
	insert := func(c *cloud) (*compute.Operation, error) {
		return c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).RequestId(firstRequest).Do()
	}
	c := open(t, set)
	first := c.done(insert(c))
	c.stop()

	now = now.Add(23 * time.Hour)
	c = open(t, set)
	if again, err := insert(c); err != nil || again.Name != first.Name {
		t.Errorf("after 23 hours it is %+v %v", again, err)
	}
	c.stop()

	now = now.Add(2 * time.Hour)
	c = open(t, set)
	_, err := insert(c)
	c.refused(err, http.StatusConflict, "alreadyExists")
}

func TestOneOfTwoAttachesAtOnceFails(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("one")
	c.makeInstance("two")
	c.makeDisk("data")
	// Neither is done before the other is asked for.
	c.inject(fault.Fault{Method: "instances.attachDisk", Count: 2, Stuck: true})
	first, firstErr := c.attach("one", "data", "READ_WRITE").Do()
	second, secondErr := c.attach("two", "data", "READ_WRITE").Do()
	c.removeFaults()

	lost := 0
	for _, ended := range []*compute.Operation{c.ended(first, firstErr), c.ended(second, secondErr)} {
		if ended.Error == nil {
			continue
		}
		lost++
		if ended.Error.Errors[0].Code != "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE" || ended.HttpErrorStatusCode != http.StatusBadRequest {
			t.Errorf("the loser hears %+v %d", ended.Error.Errors[0], ended.HttpErrorStatusCode)
		}
	}
	if users := c.disk("data").Users; lost != 1 || len(users) != 1 {
		t.Errorf("%d lost, and the disk is used by %v", lost, users)
	}
}

func TestManyReadOneDisk(t *testing.T) {
	c := open(t, options(t))
	c.makeDisk("data")
	for _, name := range []string{"one", "two"} {
		c.makeInstance(name)
		c.done(c.attach(name, "data", "READ_ONLY").Do())
	}
	if users := c.disk("data").Users; len(users) != 2 {
		t.Errorf("the disk is used by %v", users)
	}
	c.makeInstance("three")
	_, err := c.attach("three", "data", "READ_WRITE").Do()
	c.refused(err, http.StatusBadRequest, "resourceInUseByAnotherResource")
}

func TestAStoppedInstanceKeepsItsDisksAndADeletedOneFreesThem(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	c.makeDisk("data")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	c.done(c.Instances.Stop(project, zone, "node").Do())
	if instance := c.instance("node"); instance.Status != "TERMINATED" || len(instance.Disks) != 1 || len(c.disk("data").Users) != 1 {
		t.Errorf("stopped, it is %+v", instance)
	}
	c.done(c.Instances.Delete(project, zone, "node").Do())
	if disk := c.disk("data"); len(disk.Users) != 0 || disk.LastDetachTimestamp == "" {
		t.Errorf("the disk is %+v", disk)
	}
}

func TestSnapshotsKeepWhatDisksHeld(t *testing.T) {
	set := options(t)
	c := open(t, set)
	disk := c.makeDisk("data")
	path := func(id uint64) string { return filepath.Join(set.Folder, "images", itoa(id)+".img") }
	writeAt(t, path(disk.Id), 5<<30, "before")
	c.done(c.Disks.CreateSnapshot(project, zone, "data", &compute.Snapshot{Name: "copy"}).Do())
	writeAt(t, path(disk.Id), 5<<30, "after!")
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "restored", SourceSnapshot: "global/snapshots/copy", SizeGb: 20}).Do())
	c.done(c.Snapshots.Delete(project, "copy").Do())

	restored := c.disk("restored")
	if text := readAt(t, path(restored.Id), 5<<30, 6); text != "before" || restored.SizeGb != 20 {
		t.Errorf("the restored disk of %d GB holds %q", restored.SizeGb, text)
	}
}

func TestAWaitReturnsWhenTheOperationEnds(t *testing.T) {
	instant := options(t)
	instant.Latency = 0
	c := open(t, instant)
	begun := time.Now()
	for i := range 40 {
		operation, err := c.Disks.Insert(project, zone, &compute.Disk{Name: "disk-" + itoa(uint64(i)), SizeGb: 10}).Do()
		if err == nil {
			_, err = c.ZoneOperations.Wait(project, zone, operation.Name).Do()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
