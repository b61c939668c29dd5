package attach_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheWatcherTellsOfTwoWritersAndOfBlindness(t *testing.T) {
	for name, c := range map[string]struct {
		seen map[string][]int
		want string
	}{
		"one writer each": {map[string][]int{"a": {1}, "b": {2}}, ""},
		"two of one":      {map[string][]int{"a": {1}, "b": {1, 2}}, "two guests could write"},
		"nothing":         {nil, "sees nothing"},
	} {
		w := &watcher{}
		w.note(c.seen)
		w.note(nil)
		err := w.verdict()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheWatcherExceptsADiskThatIsShared(t *testing.T) {
	w := &watcher{images: "/images"}
	w.share("1.img")
	w.note(map[string][]int{"/images/1.img": {1, 2}})
	if err := w.verdict(); err != nil {
		t.Error(err)
	}
	w.note(map[string][]int{"/images/2.img": {1, 2}})
	if w.verdict() == nil {
		t.Error("it excepts another disk")
	}
}

func TestAnImageThatIsReadIsNotWritten(t *testing.T) {
	folder := t.TempDir()
	w := &watcher{images: folder}
	for name, flags := range map[string]int{"written.img": os.O_CREATE | os.O_RDWR, "read.img": os.O_CREATE | os.O_RDONLY} {
		file, err := os.OpenFile(filepath.Join(folder, name), flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
	}
	if got := w.writtenBy("/proc/self"); len(got) != 1 || filepath.Base(got[0]) != "written.img" {
		t.Errorf("written are %q", got)
	}
}
