package localvolume

import "testing"

func TestACountOfADiskThatAnswersNobodyHoldsUpNoOther(t *testing.T) {
	walker := NewWalker(Base(t.TempDir()), nil)
	first := Volume{Path: "/base/hung", Name: "pvc-1"}
	if !walker.isFirst(first) || walker.isFirst(Volume{Path: "/base/hung", Name: "pvc-2"}) {
		t.Error("two of a folder are counted at once")
	}
	if !walker.isFirst(Volume{Path: "/base/well", Name: "pvc-3"}) {
		t.Error("one of another folder has to wait")
	}
	if next, found := walker.next("/base/hung"); !found || next.Name != "pvc-2" {
		t.Errorf("next is %v", next)
	}
}
