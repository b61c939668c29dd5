package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const mi = 1 << 20

// makeThere has, for a process of this test, where to make images until it is killed.
const makeThere = "STOWAGE_TEST_MAKE_IMAGES_IN"

func newImageStore(base string) *Store {
	store := NewStore(base, filesystem.NewFileSystems(utilexec.New()))
	// However busy the machine is, a removal ends in one slice.
	store.Slice = time.Hour
	return store
}

func newImage(base string) layout.Volume {
	return layout.Volume{Path: filepath.Join(base, "fast"), Name: "pvc-1", Bytes: 16 * mi, Image: &layout.Image{FSType: "ext4"}}
}

func TestAnImageIsWholeAndAloneAfterACrashAtAnyStep(t *testing.T) {
	needsExt4(t)
	const unfinished, file = ".new-pvc-1", ".new-pvc-1/image"
	for name, left := range map[string]func(folder string) error{
		"before anything":     func(string) error { return nil },
		"with a directory":    func(folder string) error { return os.Mkdir(filepath.Join(folder, unfinished), 0o700) },
		"with an empty file":  func(folder string) error { return writeImage(folder, file, 0) },
		"with half a file":    func(folder string) error { return writeImage(folder, file, 8*mi) },
		"with all but a name": func(folder string) error { return writeImage(folder, file, 16*mi) },
		"with a name that no status has yet": func(folder string) error {
			return newImageStore(filepath.Dir(folder)).Make(context.Background(), newImage(filepath.Dir(folder)), listing())
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := realDir(t)
			volume := newImage(base)
			if err := os.Mkdir(volume.Path, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := left(volume.Path); err != nil {
				t.Fatal(err)
			}
			if err := newImageStore(base).Make(t.Context(), volume, listing()); err != nil {
				t.Fatal(err)
			}
			mustBeWhole(t, volume)
		})
	}
}

func TestAnImageIsRemovedAfterACrashAtAnyStep(t *testing.T) {
	needsExt4(t)
	for name, left := range map[string]func(folder string) error{
		"of making it": func(folder string) error {
			return errors.Join(os.RemoveAll(filepath.Join(folder, "pvc-1")), writeImage(folder, ".new-pvc-1/image", 8*mi))
		},
		"after it was moved away": func(folder string) error {
			return errors.Join(os.Mkdir(filepath.Join(folder, ".deleting"), 0o700),
				os.Rename(filepath.Join(folder, "pvc-1"), filepath.Join(folder, ".deleting", "pvc-1")))
		},
		"of an earlier one of this name": func(folder string) error {
			return writeImage(folder, ".deleting/pvc-1/image", 8*mi)
		},
		"after the image went": func(folder string) error {
			return errors.Join(os.MkdirAll(filepath.Join(folder, ".deleting", "pvc-1"), 0o700), os.RemoveAll(filepath.Join(folder, "pvc-1")))
		},
		"after all of it": func(folder string) error { return os.RemoveAll(filepath.Join(folder, "pvc-1")) },
	} {
		t.Run(name, func(t *testing.T) {
			base := realDir(t)
			store, volume := newImageStore(base), newImage(base)
			if err := store.Make(t.Context(), volume, listing()); err != nil {
				t.Fatal(err)
			}
			if err := left(volume.Path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := store.Remove(t.Context(), volume); err != nil {
					t.Fatal(err)
				}
			}
			mustHoldNothing(t, volume.Path)
		})
	}
}

func TestAnAgentThatIsKilledWhileItMakesAnImageLeavesNothingButItsDraft(t *testing.T) {
	needsExt4(t)
	if base := os.Getenv(makeThere); base != "" {
		makeForEver(t, base)
	}
	for round := range 12 {
		base := realDir(t)
		child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), makeThere+"="+base)
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		awaitEntry(t, filepath.Join(base, "fast"))
		// Each round a little later in what takes some 20 ms.
		<-time.After(time.Duration(round) * 2 * time.Millisecond)
		_ = child.Process.Kill()
		_ = child.Wait()

		for _, volume := range imagesLeft(t, base) {
			if err := newImageStore(base).Make(t.Context(), volume, listing()); err != nil {
				t.Fatal(err)
			}
			mustBeWhole(t, volume)
			if err := newImageStore(base).Remove(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
		}
		mustHoldNothing(t, filepath.Join(base, "fast"))
	}
}

// makeForEver makes images, and removes every other one, until this process is killed.
func makeForEver(t *testing.T, base string) {
	store := newImageStore(base)
	for i := 0; ; i++ {
		volume := newImage(base)
		volume.Name = fmt.Sprintf("pvc-%d", i)
		if err := store.Make(t.Context(), volume, listing()); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			continue
		}
		if err := store.Remove(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
}

// imagesLeft finds what a process left that was killed. What it was removing is
// removed wholly.
func imagesLeft(t *testing.T, base string) (left []layout.Volume) {
	t.Helper()
	for _, pattern := range []string{".deleting/pvc-*", ".new-pvc-*", "pvc-*"} {
		paths, err := filepath.Glob(filepath.Join(base, "fast", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			volume := newImage(base)
			volume.Name = strings.TrimPrefix(filepath.Base(path), ".new-")
			if filepath.Base(filepath.Dir(path)) != ".deleting" {
				left = append(left, volume)
			} else if err := newImageStore(base).Remove(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
		}
	}
	return left
}

func TestAnImageThatCanNotBeWrittenToTheDiskIsNotThere(t *testing.T) {
	needsExt4(t)
	base := realDir(t)
	store, volume := newImageStore(base), newImage(base)
	err := mounttest.Sync.Under(t, func() error { return store.Make(t.Context(), volume, listing()) })
	if !errors.Is(err, unix.EIO) {
		t.Errorf("got %v", err)
	}
	if exists, err := store.Base.Exists(volume); exists || err != nil {
		t.Errorf("it is there (%v)", err)
	}
	mustHoldNothing(t, volume.Path)
}

func TestADiskThatCanNotKeepRoomHoldsSparseImagesOnly(t *testing.T) {
	needsExt4(t)
	// Some file systems refuse, and some say yes and do nothing.
	for name, answer := range map[string]syscall.Errno{"refused": unix.EOPNOTSUPP, "not done": 0} {
		t.Run(name, func(t *testing.T) {
			base := realDir(t)
			store, volume := newImageStore(base), newImage(base)
			noFallocate := mounttest.Refusal{First: unix.SYS_FALLOCATE, Last: unix.SYS_FALLOCATE, Errno: answer}
			err := noFallocate.Under(t, func() error { return store.Make(t.Context(), volume, listing()) })
			if !errors.Is(err, device.ErrCannotAllocate) || !strings.Contains(err.Error(), "local.allocation Sparse") {
				t.Errorf("got %v", err)
			}
			mustHoldNothing(t, volume.Path)
			volume.Image.Sparse = true
			if err := store.Make(t.Context(), volume, listing()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestImagesThatAreMadeAtOnceNeverGetMoreThanTheDiskHas(t *testing.T) {
	needsExt4(t)
	for _, sparse := range []bool{false, true} {
		base := newDisk(t, 100*mi)
		store := newImageStore(base)
		var all []layout.Volume
		for _, name := range strings.Fields("pvc-1 pvc-2 pvc-3 pvc-4 pvc-5 pvc-6 pvc-7 pvc-8 pvc-9") {
			all = append(all, layout.Volume{Path: base, Name: name, Bytes: 16 * mi, Image: &layout.Image{FSType: "ext4", Sparse: sparse}})
		}
		if made := makeAtOnce(t, store, all); made != 6 {
			t.Errorf("%d images were made where 6 fit", made)
		}
		if store.Rooms.Unfinished() != 0 {
			t.Errorf("%d drafts are left", store.Rooms.Unfinished())
		}
		for _, volume := range all {
			if kept, err := isKept(store, volume); err != nil || kept == sparse {
				t.Errorf("the disk keeps room for %s: %v (%v)", volume.Name, kept, err)
			}
		}
	}
}

// isKept reports whether the disk keeps room for a volume's image; for one that wasn't made, the
// result is that of all others.
func isKept(store *Store, volume layout.Volume) (bool, error) {
	image, err := store.Base.OpenImage(volume)
	if errors.Is(err, os.ErrNotExist) {
		return !volume.Image.Sparse, nil
	}
	if err != nil {
		return false, err
	}
	defer image.Close()
	return loopdev.IsAllocated(image)
}

func TestManyImagesLeaveNoLoopDeviceAndNoMount(t *testing.T) {
	needsExt4(t)
	base := realDir(t)
	store := newImageStore(base)
	mounts, err := (mount.Kernel{}).Table()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for _, name := range []string{"pvc-1", "pvc-2", "pvc-3", "pvc-4"} {
		volume := newImage(base)
		volume.Name = name
		group.Go(func() {
			if err := store.Make(t.Context(), volume, listing()); err != nil {
				t.Error(err)
			}
			image, err := store.Base.OpenImage(volume)
			if err != nil {
				t.Error(err)
				return
			}
			defer image.Close()
			if loop, err := loopdev.Find(image); loop != nil || err != nil {
				t.Errorf("%s has a loop device (%v)", name, err)
			}
			if err := store.Remove(t.Context(), volume); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	mustHoldNothing(t, filepath.Join(base, "fast"))
	if after, err := (mount.Kernel{}).Table(); err != nil || len(after) != len(mounts) {
		t.Errorf("there were %d mounts, and are %d (%v)", len(mounts), len(after), err)
	}
}
