package filesystem

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

func TestAFileIsBlankUntilAnythingIsWrittenToIt(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := loopdev.Allocate(file, 4<<20); err != nil {
		t.Skipf("NOT RUN: %v", err)
	}
	if blank, err := isBlank(file.Name()); err != nil || !blank {
		t.Errorf("room that was kept for it: blank is %v (%v)", blank, err)
	}
	for _, at := range []int64{0, 2 << 20, 4<<20 - 1} {
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(4 << 20); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte{0}, at); err != nil {
			t.Fatal(err)
		}
		if blank, err := isBlank(file.Name()); err != nil || blank {
			t.Errorf("a byte at %d: blank is %v (%v)", at, blank, err)
		}
	}
	if blank, err := isBlank(os.DevNull); err != nil || blank {
		t.Errorf("a device: blank is %v (%v)", blank, err)
	}
}
