package inspect

import (
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

func TestAnInspectionReportsThatHardlyAnyInodesAreLeft(t *testing.T) {
	for used, full := range map[int64]bool{94: false, 95: true} {
		seen := Report{Usage: &usage.Usage{Size: 1 << 30, Inodes: &used}, mostInodes: 100}
		seen.CheckLimits("")
		if (len(seen.Troubles) == 1) != full || full && !strings.Contains(seen.Troubles[0].message, "files as it may have") {
			t.Errorf("%d of 100: %v", used, seen.Troubles)
		}
	}
}
