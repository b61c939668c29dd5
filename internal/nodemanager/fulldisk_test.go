package nodemanager

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	mustDo(t, err)
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

func hasAll(got, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(line string) bool { return !slices.Contains(got, line) })
}

func TestOnAFullDiskAPodWaitsAndLosesNothing(t *testing.T) {
	mounttest.NeedsRoot(t)
	for _, volume := range []string{"emptyDir", "configMap", "secret", "projected"} {
		t.Run(volume, func(t *testing.T) {
			n := newKilledNode(t, volume)
			mustDo(t, os.Mkdir(n.root(), 0o750), unix.Mount("tmpfs", n.root(), "tmpfs", 0, "size=1m,mode=750"))
			should, filler := n.learn(t), n.path("agent", "filler")
			n.Leaves = false

			fill(t, filler)
			if err := n.settle(t.Context()); err == nil {
				t.Error("the disk isn't full")
			}
			mustDo(t, os.Remove(filler))
			n.mustSettle(t, "when there is room")
			n.mustBe(t, should.shown[n.Version], "when there is room")

			// What is shown stays whole while there is no room for what should be.
			fill(t, filler)
			n.Version = 0
			if err := n.settle(t.Context()); err != nil && !errors.Is(err, unix.ENOSPC) {
				t.Error(err)
			}
			mustDo(t, os.Remove(filler))
			if got := n.look(t); !hasAll(got, should.shown[0]) && !hasAll(got, should.shown[1]) {
				t.Errorf("while there was no room, it showed neither what it did nor what it should: %q", got)
			}
			fill(t, filler)
			n.Leaves = true
			n.mustSettle(t, "of a full disk")
			mustDo(t, os.Remove(filler))
			n.mustBe(t, should.empty, "of a full disk")
		})
	}
}
