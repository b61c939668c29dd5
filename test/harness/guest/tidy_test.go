package guest

import (
	"os"
	"testing"
)

func TestWhatATestLeftIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := newFolder("tidy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Disk("some", 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := folder.keepLogs(); err != nil {
		t.Fatal(err)
	}
	if err := folder.keepLogs(); err != nil {
		t.Errorf("again: %v", err)
	}
	entries, err := os.ReadDir(folder.root)
	// Its owner's file is how `make clean-machine` recognises it.
	if err != nil || len(entries) != 2 || entries[0].Name() != ".owner" || entries[1].Name() != "logs" {
		t.Errorf("there is %v, %v", entries, err)
	}
}
