package csi_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// write writes to a device as a pod with that device does.
func write(t *testing.T, path, content string) error {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(content)
	return err
}

//proves:csi/local-Image-Block
func TestAnImageIsADeviceForAllPodsAndGoesWithTheLast(t *testing.T) {
	n := newNode(t, "", imageBytes)
	spec := n.spec(asDevice)
	first, second := n.publish(t, "first", spec), n.publish(t, "second", spec)
	if err := write(t, first, "hello"); err != nil {
		t.Fatal(err)
	}
	n.restart(t)
	n.unpublish(t, "first", spec)
	read := make([]byte, 5)
	shown, err := os.Open(second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shown.Read(read); err != nil || string(read) != "hello" {
		t.Errorf("the other pod reads %q (%v)", read, err)
	}
	shown.Close()
	there, err := n.devices.IsPublished(n.table(t), spec, second)
	if !there || err != nil {
		t.Errorf("got %v, %v", there, err)
	}
	n.unpublish(t, "second", spec)
	n.mustBeClean(t)
}

//proves:csi/local-Image-Block
func TestADeviceIsWrittenOnlyWhileAPodThatMayHasIt(t *testing.T) {
	n := newNode(t, "", imageBytes)
	reading, writing := n.spec(asDevice, reading), n.spec(asDevice)
	reader := n.publish(t, "reader", reading)
	if err := write(t, reader, "x"); !errors.Is(err, unix.EPERM) {
		t.Errorf("a reader's write gave %v", err)
	}
	if err := write(t, n.publish(t, "writer", writing), "x"); err != nil {
		t.Error(err)
	}
	n.unpublish(t, "writer", writing)
	if err := write(t, reader, "x"); !errors.Is(err, unix.EPERM) {
		t.Errorf("a reader's write gave %v", err)
	}
	loop := n.loop(t)
	n.unpublish(t, "reader", reading)
	n.mustBeClean(t)
	mustNotBeProtected(t, loop)
}

// mustNotBeProtected fails if a free loop device is read-only: the next image that gets it
// couldn't be written.
func mustNotBeProtected(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if readOnly, err := unix.IoctlGetInt(int(file.Fd()), unix.BLKROGET); err != nil || readOnly != 0 {
		t.Errorf("it is left read-only: %d (%v)", readOnly, err)
	}
}

func TestADeviceThatWasDetachedIsReportedAndCleanedUp(t *testing.T) {
	n := newNode(t, "", imageBytes)
	spec := n.spec(asDevice)
	seen := n.publish(t, "pod", spec)
	image, err := os.Open(n.image())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	loop, err := loopdev.Find(image)
	if err != nil || loop == nil {
		t.Fatal(loop, err)
	}
	if err := loop.Detach(context.Background()); err != nil {
		t.Fatal(err)
	}
	there, err := n.devices.IsPublished(n.table(t), spec, seen)
	if !there || err == nil || !strings.Contains(err.Error(), "loop device was detached") {
		t.Errorf("got %v, %v", there, err)
	}
	n.unpublish(t, "pod", spec)
	n.mustBeClean(t)
}

//proves:csi/refused
func TestADirectoryIsNoDevice(t *testing.T) {
	n := newNode(t, "", imageBytes)
	spec := n.spec(asDevice)
	spec.PersistentVolume.Spec.CSI.VolumeAttributes["layout"] = "Directory"
	if err := n.devices.Publish(t.Context(), spec, n.at(t, "pod")); !errors.Is(err, volumes.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
}

func TestAFileWhereADeviceWasExpectedIsKept(t *testing.T) {
	n := newNode(t, "", imageBytes)
	path := n.at(t, "pod")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.devices.Unpublish(t.Context(), path); err == nil {
		t.Error("it was removed")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
