package backendtest

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

// AttachContract runs the suite of Attacher, AttachmentLister and NodeObserver against
// a backend. Each test makes one of its own, with machines that nothing is attached to.
func AttachContract(t *testing.T, open func(t *testing.T) Machines) {
	for name, test := range map[string]func(*testing.T, machines){
		"what is attached is told, and where":                     testAttached,
		"a repeat finds the volume attached":                      testAttachRepeated,
		"an attach that was given up is made good by a repeat":    testAttachGivenUp,
		"many calls for one volume attach it once":                testAttachConcurrent,
		"of two nodes that would write at once, one can":          testAttachRace,
		"a volume that is attached elsewhere is a conflict":       testAttachElsewhere,
		"several nodes can read":                                  testReadersShare,
		"a node that reads and one that would write are conflict": testReaderAndWriter,
		"one node can't have a volume in two ways":                testAttachOtherWay,
		"a volume that isn't there can't be attached":             testAttachAbsent,
		"a node that isn't there can't have a volume":             testAttachToAbsent,
		"what isn't attached can be detached":                     testDetachAbsent,
		"a detach that was given up is made good by a repeat":     testDetachGivenUp,
		"one node's detach leaves the others'":                    testDetachOne,
		"where a volume is attached can be asked":                 testIsAttached,
		"what is attached is not deleted":                         testDeleteAttached,
		"a machine is observed as it is":                          testObserve,
		"a disk that others made is attached, and nothing else":   testExisting,
	} {
		t.Run(name, func(t *testing.T) {
			opened := open(t)
			attacher, can := backend.As[backend.Attacher](opened.Backend)
			if !can {
				t.Fatal("this backend doesn't attach")
			}
			test(t, machines{opened, subject{Backend: opened.Backend}, attacher})
		})
	}
}
