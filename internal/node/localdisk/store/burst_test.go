package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// burst makes volumes on a disk of 100Mi, all in one second.
type burst struct {
	*Store
	base  string
	clock *clocktesting.FakePassiveClock
	made  []layout.Volume
	// lists is how often the volumes were listed.
	lists int
}

func newBurst(t *testing.T) *burst {
	t.Helper()
	mounttest.NeedsRoot(t)
	b := &burst{base: newDisk(t, 100*mi), clock: clocktesting.NewFakePassiveClock(time.Now())}
	b.Store = NewStore(b.base, filesystem.FileSystems{})
	b.Rooms.Clock = b.clock
	return b
}

func (b *burst) list() ([]layout.Volume, error) {
	b.lists++
	return b.made, nil
}

func (b *burst) volume(bytes int64) layout.Volume {
	return layout.Volume{Path: b.base, Name: fmt.Sprintf("pvc-%d", len(b.made)), Bytes: bytes}
}

// mustMake makes an empty directory.
func (b *burst) mustMake(t *testing.T, bytes int64) {
	t.Helper()
	volume := b.volume(bytes)
	if err := b.Make(t.Context(), volume, b.list); err != nil {
		t.Fatalf("%d volumes are made, and one of %d Mi isn't: %v", len(b.made), bytes/mi, err)
	}
	b.made = append(b.made, volume)
}

func (b *burst) mustRefuse(t *testing.T, bytes int64) {
	t.Helper()
	if err := b.Make(t.Context(), b.volume(bytes), b.list); !errors.Is(err, layout.ErrExhausted) {
		t.Errorf("beside %d volumes, one of %d Mi has %v", len(b.made), bytes/mi, err)
	}
}

func TestVolumesThatAreMadeInOneSecondAreSummedUpOnce(t *testing.T) {
	b := newBurst(t)
	for range 10 {
		b.mustMake(t, mi)
	}
	if b.lists != 1 {
		t.Errorf("all volumes were listed %d times", b.lists)
	}
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	b.mustMake(t, mi)
	if b.lists != 2 {
		t.Errorf("a second later, they were listed %d times", b.lists)
	}
}

func TestWholeImagesAreSummedUpOnceUntilTheDiskIsFull(t *testing.T) {
	b := newBurst(t)
	for range 5 {
		image := b.volume(19 * mi)
		image.Image = &layout.Image{}
		if err := b.Make(t.Context(), image, b.list); err != nil {
			t.Fatal(err)
		}
		b.made = append(b.made, image)
	}
	if b.lists != 1 {
		t.Errorf("all volumes were listed %d times", b.lists)
	}
	b.mustRefuse(t, 6*mi)
}

func TestNoRoomIsGivenTwiceInOneSecond(t *testing.T) {
	b := newBurst(t)
	b.mustMake(t, 40*mi)
	b.mustMake(t, 40*mi)
	b.mustRefuse(t, 21*mi)
	b.mustMake(t, 20*mi)
}

func TestRoomOfARemovedVolumeIsGivenAtOnce(t *testing.T) {
	b := newBurst(t)
	b.mustMake(t, 40*mi)
	b.mustMake(t, 40*mi)
	if err := os.Remove(b.made[1].Directory()); err != nil {
		t.Fatal(err)
	}
	b.made = b.made[:1]
	b.mustMake(t, 60*mi)
}

func TestGrowthCountsInTheSameSecond(t *testing.T) {
	for name, image := range map[string]*layout.Image{"a directory": nil, "an image": {Sparse: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBurst(t)
			grown := b.volume(40 * mi)
			grown.Image = image
			if err := b.Make(t.Context(), grown, b.list); err != nil {
				t.Fatal(err)
			}
			grown.Provisioned, grown.Has, grown.Bytes = true, 40*mi, 80*mi
			if err := b.Grant(t.Context(), grown, b.list); err != nil {
				t.Fatal(err)
			}
			b.made = append(b.made, grown)
			b.mustRefuse(t, 21*mi)
			b.mustMake(t, 20*mi)
		})
	}
}

func TestAnAdoptedVolumeCountsInTheSameSecond(t *testing.T) {
	b := newBurst(t)
	b.mustMake(t, 40*mi)
	adopted := b.volume(40 * mi)
	if err := os.Mkdir(adopted.Directory(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.AdoptFound(t.Context(), adopted, b.list); err != nil {
		t.Fatal(err)
	}
	b.made = append(b.made, adopted)
	b.mustRefuse(t, 21*mi)
}

func TestWhatAUserDiscardsIsNotGivenToOthersInTheSameSecond(t *testing.T) {
	b := newBurst(t)
	write(t, filepath.Join(b.base, "other"), 40*mi)
	image := b.volume(30 * mi)
	image.Image = &layout.Image{Sparse: true}
	if err := b.Make(t.Context(), image, b.list); err != nil {
		t.Fatal(err)
	}
	write(t, image.ImagePath(), 30*mi)
	b.made = append(b.made, image)
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	b.mustMake(t, 10*mi)

	discard(t, image.ImagePath(), 30*mi)

	b.mustRefuse(t, 21*mi)
	b.mustMake(t, 19*mi) // the image has a block or two of its own
}

func discard(t *testing.T, path string, bytes int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, bytes); err != nil {
		t.Fatal(err)
	}
}
