package guest

import (
	"slices"
	"testing"
)

func TestLoopDevicesStandOnEachOther(t *testing.T) {
	disk := inode{device: 1, number: 10}
	all := []loop{
		{path: "third", number: 103, shows: inode{device: 102, number: 5}},
		{path: "another's", number: 104, shows: inode{device: 1, number: 11}},
		{path: "second", number: 102, shows: inode{device: 101, number: 5}},
		{path: "first", number: 101, shows: disk},
		{path: "on another's", number: 105, shows: inode{device: 104, number: 5}},
	}
	var got []string
	for _, loop := range standingOn(map[inode]bool{disk: true}, all) {
		got = append(got, loop.path)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
