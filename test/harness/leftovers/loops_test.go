package leftovers

import (
	"io/fs"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestADeviceMayGoWhileItIsLookedAt(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOENT: true, unix.ENODEV: true, unix.ENXIO: true, unix.EACCES: false} {
		if got := isGone(&fs.PathError{Op: "read", Path: "/sys", Err: err}); got != want {
			t.Errorf("of %v it says %v", err, got)
		}
	}
}

func TestLoopDevicesStandOnEachOther(t *testing.T) {
	disk := inode{device: 1, number: 10}
	all := []loop{
		{file: "third", number: 103, shows: inode{device: 102, number: 5}},
		{file: "another's", number: 104, shows: inode{device: 1, number: 11}},
		{file: "second", number: 102, shows: inode{device: 101, number: 5}},
		{file: "first", number: 101, shows: disk},
		{file: "on another's", number: 105, shows: inode{device: 104, number: 5}},
	}
	var got []string
	for _, loop := range standingOn(all, func(l loop) bool { return l.shows == disk }) {
		got = append(got, loop.file)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
