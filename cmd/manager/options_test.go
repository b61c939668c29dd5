package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func TestEachStorageBackendHasItsOwnSocket(t *testing.T) {
	apart := options{csiControllers: map[string]string{"disks": "/csi/disks.sock", "share": "/csi/share.sock"}}
	if err := apart.checkSockets(); err != nil {
		t.Error(err)
	}
	together := options{csiControllers: map[string]string{"disks": "/csi/one.sock", "share": "/csi//one.sock"}}
	if err := together.checkSockets(); err == nil || !strings.Contains(err.Error(), "disks and share have the same socket") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyItsOwnDriversAreLeftToCSISnapshotter(t *testing.T) {
	flags, of := pflag.NewFlagSet("manager", pflag.ContinueOnError), options{}
	of.addFlags(flags)
	for driver, says := range map[string]string{stowagev1alpha1.LocalDriver: "", "disk.example.com": "none of Stowage's own drivers"} {
		of.csiSnapshotterDrivers = []string{driver}
		if err := of.check(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("of %s it says %v", driver, err)
		}
	}
}
