package queue_test

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

func TestCallsAboutAnExistingDiskAreMadeOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const disk = "projects/p/zones/z/disks/legacy"
		d := newDesk(t, 8)
		d.AddExisting(disk)
		on := func(number int) backend.Attacher {
			attacher, can := backend.As[backend.ExistingAttacher](d.served(node(number).Name))
			if !can {
				t.Fatal("it attaches none")
			}
			return attacher.Existing()
		}
		release := d.Hold()
		if _, err := on(1).Attach(t.Context(), backend.AttachRequest{ID: disk, Node: node(1)}); !errors.Is(err, backend.Queued) {
			t.Errorf("it is answered %v", err)
		}
		if err := on(2).Detach(t.Context(), disk, node(2)); !errors.Is(err, backend.Queued) {
			t.Errorf("it is answered %v", err)
		}
		synctest.Wait()
		if calls := d.Calls(); len(calls) != 1 {
			t.Errorf("at once were made %v", calls)
		}
		release()
		synctest.Wait()
		if _, err := on(1).Attach(t.Context(), backend.AttachRequest{ID: disk, Node: node(1)}); err != nil {
			t.Error(err)
		}
		if machines := d.ExistingOn(disk); len(machines) != 1 {
			t.Errorf("it is on %v", machines)
		}
		if methods := reflect.TypeOf(on(1)).NumMethod(); methods != 3 { // Attach, Detach, and IsAttached, which only looks
			t.Errorf("there are %d ways to do something to an existing disk", methods)
		}
	})
}

func TestABackendThatAttachesNoExistingDisksIsToldApart(t *testing.T) {
	d := newDesk(t, 1)
	none := d.dispatcher.Serve(queue.Lane{Backend: "disks", Limit: 1}, panicking{d.Backend}, func() {})
	if _, can := backend.As[backend.ExistingAttacher](none); can {
		t.Error("it is said to attach them")
	}
}
