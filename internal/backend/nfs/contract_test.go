package nfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestOverTheClientTheContractIsKept(t *testing.T) {
	backendtest.Contract(t, overTheClient)
}

func TestOverAMountTheContractIsKept(t *testing.T) {
	backendtest.Contract(t, overAMount)
}

func TestOverTheClientTheContractOfSnapshotsIsKept(t *testing.T) {
	backendtest.SnapshotContract(t, overTheClient)
}

func TestOverAMountTheContractOfSnapshotsIsKept(t *testing.T) {
	backendtest.SnapshotContract(t, overAMount)
}

func overTheClient(t *testing.T) (opened backend.Backend, has func(string) bool) {
	t.Helper()
	w := newWorld(t)
	return w.open(t), w.hasVolume
}

func overAMount(t *testing.T) (opened backend.Backend, has func(string) bool) {
	t.Helper()
	mounts := t.TempDir()
	w := newWorld(t)
	w.folder = filepath.Join(mounts, "share")
	must(t, os.Mkdir(w.folder, 0o755))
	mounttest.Tmpfs(t, w.folder)
	w.server.Close()
	return w.openAs(t, newKind(t, thisCluster, mounts)), w.hasVolume
}

// hasVolume reports whether anything of a volume is on the share, without the backend:
// its directory, or what is ours.
func (w *world) hasVolume(id string) bool {
	for _, pattern := range []string{"*-" + id[len("pvc-"):], ".stowage/*/" + id + "*", ".stowage/*/*-" + id[len("pvc-"):]} {
		if found, _ := filepath.Glob(filepath.Join(w.folder, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}
