package guest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestAProcessEndsOnce(t *testing.T) {
	if err := hasEnded(""); err != nil {
		t.Errorf("of no process: %v", err)
	}
	if hasEnded(fmt.Sprint(os.Getpid())) == nil {
		t.Error("this process has ended")
	}
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if err := hasEnded(fmt.Sprint(child.Process.Pid)); err != nil {
		t.Error(err)
	}
}

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
