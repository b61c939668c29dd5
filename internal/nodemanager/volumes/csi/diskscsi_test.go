package csi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// scsiDebug is the folder of the kernel's own SCSI disk for tests: the one kind of disk here that
// can be removed under a mount.
const scsiDebug = "/sys/bus/pseudo/drivers/scsi_debug"

// scsiNode is a diskNode whose disk is a SCSI disk.
type scsiNode struct {
	*diskNode
	links string
}

func newScsiNode(t *testing.T) *scsiNode {
	t.Helper()
	if _, err := os.Stat(scsiDebug); err != nil {
		t.Skip("NOT RUN: this kernel has no disk of module scsi_debug")
	}
	n := &scsiNode{diskNode: newDiskNode(t, imageBytes), links: t.TempDir()}
	n.finder = clouddisk.DiskFolder{Path: n.links, Serials: clouddisk.HardwareSerials{}}
	n.restart()
	n.link()
	return n
}

// found is what the kernel has of the disk: none while it is away.
func (n *scsiNode) found() []string {
	n.Helper()
	disks, err := filepath.Glob(scsiDebug + "/adapter0/host*/target*/*/block/sd*")
	n.must(err)
	return disks
}

// link does what udev does with a disk that came, or went.
func (n *scsiNode) link() {
	n.Helper()
	link := filepath.Join(n.links, "google-data")
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.Fatal(err)
	}
	for _, disk := range n.found() {
		n.must(os.Symlink("/dev/"+filepath.Base(disk), link))
	}
}

func (n *scsiNode) scsiSpec(changes ...func(*volumes.Spec)) volumes.Spec {
	n.Helper()
	page, err := os.ReadFile(n.found()[0] + "/device/vpd_pg80")
	n.must(err)
	spec := n.spec(changes...)
	spec.Attachment = &volumes.Attachment{Device: "data", Serial: strings.TrimSpace(string(page[4:]))}
	return spec
}

func (n *scsiNode) takeAway() {
	n.Helper()
	n.must(os.WriteFile(n.found()[0]+"/device/delete", []byte("1"), 0))
	n.link()
}

func (n *scsiNode) plugBackIn() {
	n.Helper()
	hosts, err := filepath.Glob(scsiDebug + "/adapter0/host*/scsi_host/host*/scan")
	n.must(err)
	for _, scan := range hosts {
		n.must(os.WriteFile(scan, []byte("- - -"), 0))
	}
	for len(n.found()) == 0 {
		if err := n.Context().Err(); err != nil {
			n.Fatal(err)
		}
	}
	n.link()
}

//proves:csi/vanishes
func TestAScsiDiskThatVanishesUnderItsMountIsReportedAndMountedAgain(t *testing.T) {
	n := newScsiNode(t)
	spec := n.scsiSpec()
	seen := n.publish("pod", spec)
	kept, err := os.Create(filepath.Join(seen, "hello"))
	n.must(err)
	_, err = kept.WriteString("world")
	n.must(err, kept.Sync())

	n.takeAway()

	if _, err := n.isPublished("pod", spec); !errors.Is(err, volumes.ErrGone) {
		t.Errorf("got %v", err)
	}
	if len(n.inUse()) != 1 {
		t.Error("it doesn't count as in use any more")
	}
	waiting, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.plugin.Publish(waiting, spec, n.at("pod")); !errors.Is(err, clouddisk.ErrNoDisk) {
		t.Errorf("without it, mounting gave %v", err)
	}
	// The pod's process has its file open still, and the old file system with it.
	n.plugBackIn()
	n.publish("pod", spec)
	if there, err := n.isPublished("pod", spec); !there || err != nil {
		t.Errorf("it isn't there again: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(seen, "hello")); string(text) != "world" {
		t.Errorf("it holds %q (%v)", text, err)
	}
	kept.Close()
	n.unpublish("pod", spec)
	n.mustBeClean()
}

func TestAScsiDiskThatVanishedIsTakenFromAPodThatHasItOpen(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			n := newScsiNode(t)
			spec := n.scsiSpec(kind)
			used, err := os.Open(n.publish("pod", spec))
			n.must(err)
			n.takeAway()
			n.unpublish("pod", spec)
			n.must(used.Close())
			n.mustBeClean()
			n.plugBackIn()
		})
	}
}
