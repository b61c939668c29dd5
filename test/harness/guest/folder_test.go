package guest

import (
	"os"
	"testing"
	"time"
)

func TestSpecsThatWaitForTheEndSucceedOnceItIsAskedFor(t *testing.T) {
	folder, ended := Folder{t.TempDir()}, make(chan error, 1)
	go func() { ended <- folder.AwaitEnd(t.Context()) }()
	for begun := time.Now(); !folder.waits(); {
		if time.Since(begun) > time.Minute {
			t.Fatal("they don't wait")
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("they ended before that: %v", err)
	default:
	}
	if err := os.Remove(folder.waiting()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
