// Package backendtest is the contract suite: what every backend must do, whatever
// its storage is. A backend's own tests call Contract with a way to make an empty
// one.
package backendtest

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

const ()

// Contract runs the suite against a backend. Each test makes one of its own; Has
// tells whether storage with an id exists, seen from outside the backend.
func Contract(t *testing.T, open func(t *testing.T) (opened backend.Backend, has func(id string) bool)) {
	for name, test := range map[string]func(*testing.T, subject){
		"a volume is made, with the capacity asked for":        testMade,
		"a repeat finds the volume made":                       testRepeat,
		"an id that is another claim's is a conflict":          testConflict,
		"a deleted volume is gone":                             testDelete,
		"a volume that was never there can be deleted":         testDeleteAbsent,
		"a volume can be deleted twice":                        testDeleteTwice,
		"a volume can be deleted while it is being made":       testDeleteEarly,
		"deleting one volume leaves its neighbours":            testNeighbours,
		"many calls for one volume make one":                   testConcurrent,
		"a request beyond the capabilities is told as invalid": testCapabilities,
		"claims whose names run together share nothing":        testNames,
		"a call that was given up is made good by a repeat":    testGivenUp,
		"a backend that can list lists what is there":          testList,
		"what is retained is listed as such, and there":        testRetain,
		"what isn't there can't be retained":                   testRetainAbsent,
		"what is retained can still be deleted":                testRetainDeleted,
		"a volume that grows has what it was asked to have":    testGrowth,
		"growing again, or to less, changes nothing":           testGrowthRepeated,
		"a volume that isn't there can't grow":                 testGrowthAbsent,
		"a growth that was given up is made good by a repeat":  testGrowthGivenUp,
		"a copy is one of its own, as large as asked for":      testClone,
		"a copy that was begun is found without its source":    testCloneRepeated,
		"a copy of what isn't there is never an empty volume":  testCloneOfNothing,
		"a copy of another claim's volume is refused":          testCloneOfAnothers,
		"a copy can be deleted while it is being made":         testCloneDeletedEarly,
	} {
		t.Run(name, func(t *testing.T) {
			opened, has := open(t)
			test(t, subject{opened, has})
		})
	}
}
