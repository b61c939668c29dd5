package localvolume

import (
	"strings"
	"testing"
)

func TestALookSaysThatAVolumeHasHardlyAnyInodesLeft(t *testing.T) {
	for used, full := range map[int64]bool{94: false, 95: true} {
		seen := sight{usage: &Usage{Size: 1 << 30, Inodes: &used}, mostInodes: 100}
		seen.lookAtLimits("")
		if (len(seen.troubles) == 1) != full || full && !strings.Contains(seen.troubles[0].message, "files as it may have") {
			t.Errorf("%d of 100: %v", used, seen.troubles)
		}
	}
}
