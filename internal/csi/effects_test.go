package csi

import (
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestAMountAndAnUnmountAreLoggedOnceHoweverOftenTheyAreRequested(t *testing.T) {
	driver := &ableDriver{}
	log, logged := logbook()
	w := startWorld(t, driver, worldOptions{log: log})
	request := publishRequest(func(*csispec.NodePublishVolumeRequest) {})
	lines := func(what string) (found []string) {
		for line := range strings.Lines(logged()) {
			if strings.Contains(line, `"level"=0 "msg"="`+what+`"`) {
				found = append(found, line)
			}
		}
		return found
	}
	driver.ails = volumes.ErrNotFound
	for range 3 {
		if _, err := w.node.NodePublishVolume(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		driver.ails = nil
	}
	if got := lines("mounted"); len(got) != 1 || !strings.Contains(got[0], `"volume"="`+request.GetVolumeId()+`"`) || !strings.Contains(got[0], `"took"=`) {
		t.Errorf("mounts: %q", got)
	}
	for range 3 {
		unpublish := &csispec.NodeUnpublishVolumeRequest{VolumeId: request.GetVolumeId(), TargetPath: request.GetTargetPath()}
		if _, err := w.node.NodeUnpublishVolume(t.Context(), unpublish); err != nil {
			t.Fatal(err)
		}
		driver.ails = volumes.ErrNotFound
	}
	if got := lines("unmounted"); len(got) != 1 {
		t.Errorf("unmounts: %q", got)
	}
}
