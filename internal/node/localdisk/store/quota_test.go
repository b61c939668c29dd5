package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/inspect"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
	"github.com/stowage-dev/stowage/internal/quota"
)

// onQuotaDisks runs a test with a store whose volumes lie on a disk that keeps project
// quotas, of each kind of file system.
func onQuotaDisks(t *testing.T, test func(t *testing.T, store *Store, volume layout.Volume)) {
	for kind, program := range map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=usrquota:grpquota:prjquota"},
		"xfs":  {"mkfs.xfs", "-q"},
	} {
		t.Run(kind, func(t *testing.T) {
			base := realDir(t)
			mountQuotaDisk(t, base, kind, program)
			volume := layout.Volume{Path: filepath.Join(base, "fast"), Name: "pvc-1", Bytes: 16 * mi, Has: 16 * mi}
			test(t, NewStore(base, filesystem.FileSystems{}), volume)
		})
	}
}

func mountQuotaDisk(t *testing.T, target, kind string, program []string) {
	t.Helper()
	mounttest.NeedsRoot(t)
	if _, err := exec.LookPath(program[0]); err != nil {
		t.Skipf("NOT RUN: %s is missing: install e2fsprogs and xfsprogs", program[0])
	}
	image, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	output, err := exec.CommandContext(t.Context(), program[0], append(program[1:], sized(t, image))...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	loop, err := loopdev.Attach(t.Context(), image, loopdev.ForFileSystem)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	err = unix.Mount(loop.Path(), target, kind, 0, "prjquota")
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		t.Skipf("NOT RUN: this machine's kernel has no quotas on %s; make e2e-local has one that has", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

func sized(t *testing.T, image *os.File) string {
	t.Helper()
	if err := image.Truncate(320 * mi); err != nil {
		t.Fatal(err)
	}
	return image.Name()
}

// projectThere is the project of a volume's directory, and what it may take up.
func projectThere(t *testing.T, store *Store, volume layout.Volume) (quota.Project, int64) {
	t.Helper()
	dir, err := store.Base.Open(volume.Directory())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	project, err := limit.ProjectOf(dir, volume)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := quota.Of(dir, project)
	if err != nil {
		t.Fatal(err)
	}
	return project, usage.Limit.Bytes
}

func mustInspect(t *testing.T, store *Store, volume layout.Volume) inspect.Report {
	t.Helper()
	seen, err := inspect.Volume(store.Base, volume, &inspect.Snapshot{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestAQuotaIsThereBeforeTheDirectoryHasItsName(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(volume.Directory())
		if err != nil || info.Mode().Perm() != layout.VolumeMode {
			t.Errorf("its mode is %v, %v", info.Mode(), err)
		}
		if project, limit := projectThere(t, store, volume); project == 0 || limit != 16*mi {
			t.Errorf("project %d may have %d", project, limit)
		}
		if seen := mustInspect(t, store, volume); !seen.Enforced || seen.Usage == nil {
			t.Errorf("got %+v", seen)
		}
	})
}

func TestAQuotaGrowsWithItsVolumeAndIsMendedAfterACrash(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		volume.Bytes = 32 * mi
		if err := store.Grant(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		if _, limit := projectThere(t, store, volume); limit != 32*mi {
			t.Errorf("it may have %d", limit)
		}
		// The status has no growth.
		if err := store.Mend(volume); err != nil {
			t.Fatal(err)
		}
		if _, limit := projectThere(t, store, volume); limit != 16*mi {
			t.Errorf("after the crash it may have %d", limit)
		}
	})
}

func TestAQuotaGoesWithItsVolume(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		project, _ := projectThere(t, store, volume)
		if err := store.Remove(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
		folder, err := store.Base.Open(volume.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if usage, err := quota.Of(folder, project); err != nil || usage.Limit != (quota.Limits{}) {
			t.Errorf("got %+v, %v", usage, err)
		}
	})
}

func TestADraftWithAQuotaThatACrashLeftIsMadeAgain(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := os.Mkdir(volume.Path, layout.FolderMode); err != nil {
			t.Fatal(err)
		}
		folder, err := store.Base.Open(volume.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		begun, err := filetree.BeginDir(context.Background(), folder, volume.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(quota.Begin(begun, volume.Name, quota.Limits{Bytes: mi}), begun.Close()); err != nil {
			t.Fatal(err)
		}
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		if _, limit := projectThere(t, store, volume); limit != 16*mi {
			t.Errorf("it may have %d", limit)
		}
	})
}

func TestAFolderInAProjectOfItsOwnGivesNoQuotas(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := os.Mkdir(volume.Path, layout.FolderMode); err != nil {
			t.Fatal(err)
		}
		folder, err := os.Open(volume.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if err := errors.Join(quota.Begin(folder, "an administrator's", quota.Limits{Bytes: 64 * mi}), store.Make(t.Context(), volume, listing())); err != nil {
			t.Fatal(err)
		}
		if seen := mustInspect(t, store, volume); seen.Enforced {
			t.Error("the capacity is enforced")
		}
	})
}

func TestACopyHasAQuotaToo(t *testing.T) {
	onQuotaDisks(t, func(t *testing.T, store *Store, volume layout.Volume) {
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		copied := volume
		copied.Name, copied.Source = "pvc-2", &volume
		if err := store.Make(t.Context(), copied, listing()); err != nil {
			t.Fatal(err)
		}
		if project, limit := projectThere(t, store, copied); project == 0 || limit != 16*mi {
			t.Errorf("project %d may have %d", project, limit)
		}
	})
}
