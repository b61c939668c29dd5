package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// makeGone makes the mounted disk look like an earlier one: neither a loop device nor a guest's
// disk can be removed under a mount.
func (n *diskNode) makeGone() {
	n.Helper()
	paths, err := filepath.Glob(filepath.Join(n.dir, "agent", "staged", "*", "disk"))
	if len(paths) != 1 {
		n.Fatalf("records: %v (%v)", paths, err)
	}
	path := paths[0]
	record, err := os.ReadFile(path)
	n.must(err)
	changed := strings.Replace(string(record), `"sequence":"`, `"sequence":"9`, 1)
	if changed == string(record) {
		n.Skip("NOT RUN: this kernel gives disks no sequence number")
	}
	n.must(os.WriteFile(path, []byte(changed), 0o600))
}

//proves:csi/vanishes
func TestADiskThatIsGoneIsReportedAndMountedAgainWhenItIsBack(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, imageBytes)
			n.publish("pod", n.spec(kind))
			n.publish("other", n.spec(kind))
			n.makeGone()
			if _, err := n.isPublished("pod", n.spec(kind)); !errors.Is(err, volumes.ErrGone) {
				t.Errorf("got %v", err)
			}
			if len(n.inUse()) != 1 {
				t.Error("it doesn't count as in use any more")
			}
			n.publish("pod", n.spec(kind))
			if there, err := n.isPublished("pod", n.spec(kind)); !there || err != nil {
				t.Errorf("it isn't there again: %v", err)
			}
			// What the other pod had is gone, and not some other pod's by now.
			if there, err := n.isPublished("other", n.spec(kind)); there || err != nil {
				t.Errorf("the other pod's is %v (%v)", there, err)
			}
			n.unpublish("pod", n.spec(kind))
			n.unpublish("other", n.spec(kind))
			n.mustBeClean()
		})
	}
}

func TestADiskThatIsGoneIsTakenFromAPodThatStillHasItOpen(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, imageBytes)
			used, err := os.Open(n.publish("pod", n.spec(kind)))
			n.must(err)
			defer used.Close()
			if name == "as a file system" {
				if err := n.plugin.Unpublish(t.Context(), n.at("pod")); err == nil {
					t.Error("a disk that is there was taken from a pod that has it open")
				}
			}
			n.makeGone()
			n.unpublish("pod", n.spec(kind))
			n.must(used.Close())
			n.mustBeClean()
		})
	}
}

func TestADeviceWhoseNumberBecameAnotherDisksIsNotThePods(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	n.publish("pod", n.spec(asDevice))
	n.detach() // by force: a bind of a device doesn't keep it
	n.attach()
	if _, err := n.isPublished("pod", n.spec(asDevice)); !errors.Is(err, volumes.ErrGone) {
		t.Errorf("got %v", err)
	}
	n.publish("pod", n.spec(asDevice))
	if there, err := n.isPublished("pod", n.spec(asDevice)); !there || err != nil {
		t.Errorf("it isn't there again: %v", err)
	}
	n.unpublish("pod", n.spec(asDevice))
	n.mustBeClean()
}
