package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// copyThere has, for a process of this test, where to make copies until it is killed.
const copyThere = "STOWAGE_TEST_COPY_IN"

// sources are a volume of each layout that can be copied.
func sources(base string) map[string]layout.Volume {
	image := newImage(base)
	image.Name, image.Provisioned = "pvc-image", true
	directory := layout.Volume{Path: image.Path, Name: "pvc-directory", Bytes: 16 * mi, Provisioned: true}
	return map[string]layout.Volume{"Directory": directory, "Image": image}
}

// fillSources makes what is copied: an image with a file system, and many files.
func fillSources(t *testing.T, base string) {
	t.Helper()
	for _, source := range sources(base) {
		if err := newImageStore(base).Make(t.Context(), source, listing()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		file := fmt.Sprintf("pvc-directory/%d/file", i)
		if err := writeImage(filepath.Join(base, "fast"), file, 64<<10); err != nil {
			t.Fatal(err)
		}
		// Each has a name beside it, and one far from it, which the copy finds later.
		for _, other := range []string{filepath.Join("pvc-directory", fmt.Sprint(i), "same"), filepath.Join("pvc-directory", fmt.Sprintf("same-%d", i))} {
			if err := os.Link(filepath.Join(base, "fast", file), filepath.Join(base, "fast", other)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func copyNamed(source layout.Volume, name string) layout.Volume {
	volume := source
	volume.Name, volume.Source, volume.Provisioned = name, &source, false
	return volume
}

func TestACopyIsWholeAndAloneAfterACrashAtAnyStep(t *testing.T) {
	needsExt4(t)
	for name, left := range map[string]func(folder string) error{
		"before anything":    func(string) error { return nil },
		"with a directory":   func(folder string) error { return os.Mkdir(filepath.Join(folder, ".new-pvc-1"), 0o700) },
		"with an empty file": func(folder string) error { return writeImage(folder, ".new-pvc-1/image", 0) },
		"with half a copy":   func(folder string) error { return writeImage(folder, ".new-pvc-1/image", 8*mi) },
		"with files, too":    func(folder string) error { return writeImage(folder, ".new-pvc-1/7/file", 8<<10) },
		"with held files":    func(folder string) error { return writeImage(folder, ".new-pvc-1/.stowage-links-X/1-2", 8<<10) },
		"with all but a name": func(folder string) error {
			return exec.Command("cp", "-a", folder+"/pvc-image", folder+"/.new-pvc-1").Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := realDir(t)
			fillSources(t, base)
			for kind, source := range sources(base) {
				if err := left(source.Path); err != nil {
					t.Fatal(err)
				}
				mustCopy(t, base, copyNamed(source, "pvc-1"))
				if err := newImageStore(base).Remove(t.Context(), copyNamed(source, "pvc-1")); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		})
	}
}

func TestAnAgentThatIsKilledWhileItCopiesLeavesNothingButItsDraft(t *testing.T) {
	needsExt4(t)
	if base := os.Getenv(copyThere); base != "" {
		copyForEver(t, base)
	}
	killWhileCopying(t, realDir(t))
}

func TestAnAgentThatIsKilledWhileItSharesBlocksLeavesNothingButItsDraft(t *testing.T) {
	needsExt4(t)
	if base := os.Getenv(copyThere); base != "" {
		copyForEver(t, base)
	}
	for _, fsType := range []string{"xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			base := filepath.Join(realDir(t), "disk")
			mountNew(t, base, fsType, 512*mi)
			killWhileCopying(t, base)
		})
	}
}

// killWhileCopying kills agents that copy below a base, each at another moment.
func killWhileCopying(t *testing.T, base string) {
	t.Helper()
	fillSources(t, base)
	test, _, _ := strings.Cut(t.Name(), "/")
	for round := range 16 {
		child := exec.Command("/proc/self/exe", "-test.run=^"+test+"$")
		child.Env = append(os.Environ(), copyThere+"="+base)
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		awaitCopy(t, filepath.Join(base, "fast"))
		// Each round a little later in what takes some 60 ms.
		<-time.After(time.Duration(round) * 4 * time.Millisecond)
		_ = child.Process.Kill()
		_ = child.Wait()
		for kind, source := range sources(base) {
			volume := copyNamed(source, "pvc-"+strings.ToLower(kind[:1]))
			mustCopy(t, base, volume)
			if err := newImageStore(base).Remove(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
		}
		mustHoldOnlySources(t, filepath.Join(base, "fast"))
	}
}

// copyForEver makes copies, and removes them, until this process is killed.
func copyForEver(t *testing.T, base string) {
	store := newImageStore(base)
	for {
		for kind, source := range sources(base) {
			volume := copyNamed(source, "pvc-"+strings.ToLower(kind[:1]))
			if err := errors.Join(store.Make(t.Context(), volume, listing()), store.Remove(t.Context(), volume)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// awaitCopy waits until a copy is being made in a folder.
func awaitCopy(t *testing.T, folder string) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if drafts, _ := filepath.Glob(filepath.Join(folder, ".new-*")); len(drafts) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing is being copied")
		}
	}
}

// mustCopy makes a copy with a new agent, and fails unless it holds what its source
// does.
func mustCopy(t *testing.T, base string, volume layout.Volume) {
	t.Helper()
	if err := newImageStore(base).Make(t.Context(), volume, listing()); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("diff", "-r", volume.Source.Directory(), volume.Directory()).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	if volume.Image != nil {
		mustBeWhole(t, volume)
	} else {
		mustHaveLinks(t, volume)
	}
}

// mustHaveLinks fails unless each name of a file is one of the same file in the copy, which
// has no other.
func mustHaveLinks(t *testing.T, volume layout.Volume) {
	t.Helper()
	for i := range 200 {
		first, err := os.Stat(filepath.Join(volume.Directory(), fmt.Sprint(i), "file"))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{filepath.Join(fmt.Sprint(i), "same"), fmt.Sprintf("same-%d", i)} {
			same, err := os.Stat(filepath.Join(volume.Directory(), other))
			if err != nil || !os.SameFile(first, same) || same.Sys().(*syscall.Stat_t).Nlink != 3 {
				t.Errorf("%s isn't the same file: %v", other, err)
			}
		}
	}
}

// mustHoldOnlySources fails if a folder holds more than what was to be copied.
func mustHoldOnlySources(t *testing.T, folder string) {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range found {
		if name := entry.Name(); name != ".deleting" && name != "pvc-image" && name != "pvc-directory" {
			t.Errorf("%s is left", name)
		}
	}
}

func TestACopyThatCanNotBeWrittenToTheDiskIsNotThere(t *testing.T) {
	needsExt4(t)
	base := realDir(t)
	fillSources(t, base)
	noSync := mounttest.Refusal{First: unix.SYS_SYNCFS, Last: unix.SYS_SYNCFS, Errno: unix.EIO}
	for kind, refused := range map[string]mounttest.Refusal{"Directory": noSync, "Image": mounttest.Sync} {
		store, volume := newImageStore(base), copyNamed(sources(base)[kind], "pvc-1")
		err := refused.Under(t, func() error { return store.Make(t.Context(), volume, listing()) })
		if exists, there := store.Base.Exists(volume); !errors.Is(err, unix.EIO) || exists || there != nil {
			t.Errorf("%s: got %v, and it is there: %v (%v)", kind, err, exists, there)
		}
		mustHoldOnlySources(t, volume.Path)
	}
}

func TestAVolumeThatIsBeingCopiedIsNotRemoved(t *testing.T) {
	needsExt4(t)
	base := realDir(t)
	fillSources(t, base)
	store := newImageStore(base)
	for kind, source := range sources(base) {
		end, err := store.copies.begin(source.Directory(), func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(t.Context(), source); !errors.Is(err, layout.ErrInUse) || !store.IsCopied(source.Directory()) {
			t.Errorf("%s: while it is copied, removing it gave %v", kind, err)
		}
		end()
		if err := store.Remove(t.Context(), source); err != nil || store.IsCopied(source.Directory()) {
			t.Errorf("%s: removing it gave %v", kind, err)
		}
		if err := store.Make(t.Context(), copyNamed(source, "pvc-1"), listing()); err == nil {
			t.Errorf("%s: what is gone was copied", kind)
		}
	}
}

func TestCopiesLeaveWorkersForOtherVolumes(t *testing.T) {
	var copying copies
	nothing := func() error { return nil }
	for range concurrentCopies {
		if _, err := copying.begin("/a", nothing); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := copying.begin("/b", nothing); !errors.Is(err, layout.ErrQueued) {
		t.Errorf("got %v", err)
	}
	copying.end("/a")
	if _, err := copying.begin("/b", nothing); err != nil {
		t.Error(err)
	}
}

func TestACopyOfWhatCanNotBeReadLeavesNothing(t *testing.T) {
	needsExt4(t)
	base := realDir(t)
	fillSources(t, base)
	volume := copyNamed(sources(base)["Directory"], "pvc-1")
	refused := mounttest.Refusal{First: unix.SYS_COPY_FILE_RANGE, Last: unix.SYS_COPY_FILE_RANGE, Errno: unix.EIO}
	err := refused.Under(t, func() error { return newImageStore(base).Make(t.Context(), volume, listing()) })
	if !errors.Is(err, unix.EIO) {
		t.Errorf("got %v", err)
	}
	mustHoldOnlySources(t, volume.Path)
}
