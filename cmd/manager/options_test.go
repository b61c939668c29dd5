package main

import (
	"strings"
	"testing"
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
