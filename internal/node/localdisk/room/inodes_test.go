package room

import (
	"errors"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestADiskWithoutInodesHasNoRoomForNewVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		inodes, free int64
		lacks        bool
	}{
		"many are left":                     {1 << 20, 1024, false},
		"few are left of many":              {1 << 20, 1023, true},
		"few are left of few":               {1000, 49, true},
		"a twentieth is left of few":        {1000, 50, false},
		"the file system has no such thing": {0, 0, false},
	} {
		there := Room{total: 10 * gi, free: 10 * gi, inodes: test.inodes, freeInodes: test.free}
		err := there.checkNew(gi)
		if lacks := errors.Is(err, layout.ErrExhausted) && strings.Contains(err.Error(), "inodes"); lacks != test.lacks || there.left() == 0 != test.lacks {
			t.Errorf("%s: %d left, %v", name, there.left(), err)
		}
		if err := there.check(gi, 0); err != nil {
			t.Errorf("%s: a volume can't grow: %v", name, err)
		}
	}
}
