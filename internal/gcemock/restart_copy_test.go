package gcemock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
)

// The records keep their names, so that a later version goes on with them.
func TestCopiesUnderWayGoOnAfterARestart(t *testing.T) {
	set := options(t)
	c := open(t, set)
	source := c.makeDisk("data").SelfLink
	c.stop()

	set.Latency = time.Hour
	c = open(t, set)
	var operations []*compute.Operation
	begin := func(operation *compute.Operation, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		operations = append(operations, operation)
	}
	begin(c.Snapshots.Insert(project, &compute.Snapshot{Name: "copy", SourceDisk: source}).Do())
	begin(c.Images.Insert(project, &compute.Image{Name: "copy", SourceDisk: source}).Do())
	begin(c.InstantSnapshots.Insert(project, zone, &compute.InstantSnapshot{Name: "copy", SourceDisk: source}).Do())
	c.stop()
	journal, err := os.ReadFile(filepath.Join(set.Folder, "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{`"Snapshot":{`, `"Image":{`, `"Instant":{`, `"From":{"Path":`} {
		if !strings.Contains(string(journal), record) {
			t.Errorf("no record has %s", record)
		}
	}

	set.Latency = quick
	c = open(t, set)
	for _, operation := range operations {
		c.done(operation, nil)
	}
	if image, err := c.Images.Get(project, "copy").Do(); err != nil || image.Status != "READY" {
		t.Errorf("the image is %+v: %v", image, err)
	}
	if snapshot, err := c.Snapshots.Get(project, "copy").Do(); err != nil || snapshot.Status != "READY" {
		t.Errorf("the snapshot is %+v: %v", snapshot, err)
	}
	if instant, err := c.InstantSnapshots.Get(project, zone, "copy").Do(); err != nil || instant.Status != "READY" {
		t.Errorf("the instant snapshot is %+v: %v", instant, err)
	}
}
