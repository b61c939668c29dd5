package poddir

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestOnlyPodsThatLostMountsAreWoken(t *testing.T) {
	tests := map[string]struct {
		now   mount.Table
		woken []types.UID
	}{
		"all as it was":                  {nodetest.TableOf("/a/1", "/a/2", "/b/1"), nil},
		"more was mounted":               {nodetest.TableOf("/a/1", "/a/2", "/b/1", "/a/3", "/c/1"), nil},
		"one mount vanished":             {nodetest.TableOf("/a/1", "/b/1"), []types.UID{"a"}},
		"one that no pod needs any more": {nodetest.TableOf("/a/1", "/a/2", "/b/1"), nil},
		"all vanished":                   {nil, []types.UID{"a", "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var losses Losses
			losses.Record(losses.Begin(), "a", []string{"/a/1", "/a/2"})
			losses.Record(losses.Begin(), "b", []string{"/b/1"})
			losses.Record(losses.Begin(), "d", []string{"/d/1"})
			losses.Forget("d")
			woken := losses.Compare(test.now)
			slices.Sort(woken)
			if !slices.Equal(woken, test.woken) {
				t.Errorf("woken are %v, want %v", woken, test.woken)
			}
		})
	}
}

func TestALossDuringAPassIsFoundByThePass(t *testing.T) {
	var losses Losses
	losses.Compare(nodetest.TableOf("/a/1"))
	if losses.Record(losses.Begin(), "a", []string{"/a/1", "/a/2"}) {
		t.Error("what was mounted since the last look counts as lost")
	}
	began := losses.Begin()
	losses.Compare(nodetest.TableOf("/a/1"))
	if !losses.Record(began, "a", []string{"/a/1", "/a/2"}) {
		t.Error("what was gone before the pass was over isn't noticed")
	}
}
