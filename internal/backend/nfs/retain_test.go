package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/share"
)

// A server that came up without its disk exports an empty directory.
func TestAVolumeIsNotGoneWhereTheWholeShareIs(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, backendtest.Request("1"))
	must(t, os.Rename(filepath.Join(w.folder, share.Folder), filepath.Join(w.folder, "elsewhere")))
	if _, err := opened.Retain(t.Context(), "pvc-1"); !errors.Is(err, backend.Unavailable) {
		t.Errorf("it answers %v", err)
	}
	must(t, os.Rename(filepath.Join(w.folder, "elsewhere"), filepath.Join(w.folder, share.Folder)))
	if _, err := opened.Retain(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
}
