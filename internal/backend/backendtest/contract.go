// Package backendtest is the contract suite: what every backend must do, whatever its storage is. A
// backend's own tests call Contract with a function that makes an empty one.
package backendtest

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Contract runs the suite against a backend. Each test opens one of its own; has reports whether
// storage with an id exists, without the backend.
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
		"a request beyond the capabilities is invalid":         testCapabilities,
		"claims with names that run together share nothing":    testNames,
		"a repeat completes a cancelled call":                  testCancelled,
		"a backend that can list lists what is there":          testList,
		"a retained volume is listed as such, and there":       testRetain,
		"an absent volume can't be retained":                   testRetainAbsent,
		"a retained volume can still be deleted":               testRetainDeleted,
		"a volume that grows has the requested capacity":       testGrowth,
		"growing again, or to less, changes nothing":           testGrowthRepeated,
		"a volume that isn't there can't grow":                 testGrowthAbsent,
		"a repeat completes a cancelled growth":                testGrowthCancelled,
		"a copy is a volume of its own, of the requested size": testClone,
		"a copy that was begun is found without its source":    testCloneRepeated,
		"a copy of an absent volume is never an empty one":     testCloneOfNothing,
		"a copy of another claim's volume is refused":          testCloneOfAnothers,
		"a copy can be deleted while it is being made":         testCloneDeletedEarly,
	} {
		t.Run(name, func(t *testing.T) {
			opened, has := open(t)
			test(t, subject{opened, has})
		})
	}
}
