package queue_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

func TestCallsForAnExistingDiskRunOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const disk = "projects/p/zones/z/disks/legacy"
		d := newDesk(t, 8)
		d.AddExisting(disk)
		release := d.Hold()
		if err := d.attach(disk, node(1)); !errors.Is(err, backend.Queued) {
			t.Errorf("it is answered %v", err)
		}
		if err := d.detach(disk, node(2)); !errors.Is(err, backend.Queued) {
			t.Errorf("it is answered %v", err)
		}
		synctest.Wait()
		if calls := d.Calls(); len(calls) != 1 {
			t.Errorf("at once were made %v", calls)
		}
		release()
		synctest.Wait()
		must(t, d.attach(disk, node(1)))
		must(t, d.detach(disk, node(2)))
		if machines := d.ExistingOn(disk); len(machines) != 1 {
			t.Errorf("it is on %v", machines)
		}
		release = d.Hold()
		_ = d.detach(disk, node(1))
		release()
		synctest.Wait()
		attacher, _ := backend.As[backend.Attacher](d.served(node(1).Name))
		if asked, err := queue.EndedDetach(attacher, disk, node(1)); !asked || err != nil {
			t.Errorf("the answer to its detach is %t, %v", asked, err)
		}
	})
}
