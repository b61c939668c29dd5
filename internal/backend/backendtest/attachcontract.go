package backendtest

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

// AttachContract runs the suite of Attacher, AttachmentLister and NodeObserver against a backend.
// Each test opens one of its own, with machines without attachments.
func AttachContract(t *testing.T, open func(t *testing.T) Machines) {
	for name, test := range map[string]func(*testing.T, machines){
		"attachments are listed with their nodes":                 testAttached,
		"a repeat finds the volume attached":                      testAttachRepeated,
		"a repeat completes a cancelled attach":                   testAttachCancelled,
		"many calls for one volume attach it once":                testAttachConcurrent,
		"of two nodes that would write at once, one can":          testAttachRace,
		"a volume that is attached elsewhere is a conflict":       testAttachElsewhere,
		"several nodes can read":                                  testReadersShare,
		"a node that reads and one that would write are conflict": testReaderAndWriter,
		"one node can't have a volume in two ways":                testAttachOtherWay,
		"a volume that isn't there can't be attached":             testAttachAbsent,
		"a node that isn't there can't have a volume":             testAttachToAbsent,
		"a volume that isn't attached can be detached":            testDetachAbsent,
		"a repeat completes a cancelled detach":                   testDetachCancelled,
		"one node's detach leaves the others'":                    testDetachOne,
		"where a volume is attached can be asked":                 testIsAttached,
		"an attached volume is not deleted":                       testDeleteAttached,
		"a machine is observed as it is":                          testObserve,
		"a disk of others is attached, and nothing else":          testExisting,
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
