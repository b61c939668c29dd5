package usage

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestACountOnADiskThatHangsDelaysNoOther(t *testing.T) {
	walker := NewWalker(layout.Base(t.TempDir()), nil)
	first := layout.Volume{Path: "/base/hung", Name: "pvc-1"}
	if !walker.isFirst(first) || walker.isFirst(layout.Volume{Path: "/base/hung", Name: "pvc-2"}) {
		t.Error("two of a folder are counted at once")
	}
	if !walker.isFirst(layout.Volume{Path: "/base/well", Name: "pvc-3"}) {
		t.Error("one of another folder has to wait")
	}
	if next, found := walker.next("/base/hung"); !found || next.Name != "pvc-2" {
		t.Errorf("next is %v", next)
	}
}
