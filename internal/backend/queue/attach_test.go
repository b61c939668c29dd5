package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

func node(number int) backend.NodeIdentity {
	name := fmt.Sprintf("node-%d", number)
	return backend.NodeIdentity{Name: name, ProviderID: "fake://zone/" + name}
}

// attach attaches a volume for reading; the caller is woken by its name.
func (d *desk) attach(id string, to backend.NodeIdentity) error {
	attacher, _ := backend.As[backend.Attacher](d.served(to.Name))
	_, err := attacher.Attach(context.Background(), backend.AttachRequest{ID: id, Node: to, ReadOnly: true})
	return err
}

func (d *desk) detach(id string, from backend.NodeIdentity) error {
	attacher, _ := backend.As[backend.Attacher](d.served(from.Name))
	return attacher.Detach(context.Background(), id, from)
}

func (d *desk) observe(caller string, of backend.NodeIdentity) (backend.Machine, error) {
	observer, _ := backend.As[backend.NodeObserver](d.served(caller))
	return observer.ObserveNode(context.Background(), of)
}

func TestAServedBackendKeepsTheContractOfAttaching(t *testing.T) {
	backendtest.AttachContract(t, func(t *testing.T) backendtest.Machines {
		d := newDesk(t, 4)
		d.SetMachine(node(9), backend.MachineGone)
		d.AddExisting("projects/p/zones/z/disks/legacy")
		return backendtest.Machines{
			Existing: "projects/p/zones/z/disks/legacy",
			Backend:  d.served(""), Nodes: [2]backend.NodeIdentity{node(1), node(2)}, Absent: node(9),
			Stop:   func(node backend.NodeIdentity) { d.SetMachine(node, backend.MachineStopped) },
			Remove: func(node backend.NodeIdentity) { d.SetMachine(node, backend.MachineGone) },
		}
	})
}

func TestEveryNodeGetsTheAnswerOfItsOwnAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, id := newDesk(t, 8), request("1", "a").ID
		must(t, d.provision(request("1", "a")))
		release := d.Hold()
		for number := range 5 {
			if err := d.attach(id, node(number)); !errors.Is(err, backend.Queued) {
				t.Errorf("node %d is answered %v", number, err)
			}
		}
		release()
		for asked := 0; asked < len(d.woken()); asked++ {
			_ = d.attach(id, backend.NodeIdentity{Name: d.woken()[asked], ProviderID: "fake://zone/" + d.woken()[asked]})
		}
		calls := slices.DeleteFunc(d.Calls(), func(call string) bool { return call == "Provision "+id })
		if len(calls) != 5 || len(d.AttachedTo(id)) != 5 {
			t.Errorf("the backend was called for %v", calls)
		}
	})
}

func TestNoOtherCallRunsForAVolumeThatIsBeingAttached(t *testing.T) {
	for name, ask := range map[string]func(*desk, string) error{
		"a detach from another node": func(d *desk, id string) error { return d.detach(id, node(2)) },
		"a detach from the same":     func(d *desk, id string) error { return d.detach(id, node(1)) },
		"an attach to another node":  func(d *desk, id string) error { return d.attach(id, node(2)) },
		"its removal":                func(d *desk, id string) error { return d.delete(id) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, id := newDesk(t, 8), request("1", "a").ID
				must(t, d.provision(request("1", "a")))
				release := d.Hold()
				_ = d.attach(id, node(1))
				if err := ask(d, id); !errors.Is(err, backend.Queued) {
					t.Errorf("it is answered %v", err)
				}
				if begun := d.Calls(); len(begun) != 2 {
					t.Errorf("the backend is called for %v at once", begun[1:])
				}
				release()
				synctest.Wait()
				if err := ask(d, id); err != nil && !errors.Is(err, backend.InProgress) {
					t.Errorf("repeated, it returns %v", err)
				}
			})
		})
	}
}

func TestABusyVolumeBlocksNoOtherOfItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 8)
		must(t, d.provision(request("1", "a")))
		must(t, d.provision(request("2", "a")))
		release := d.Hold()
		defer release()
		_ = d.attach(request("1", "a").ID, node(1))
		_ = d.attach(request("1", "a").ID, node(2))
		_ = d.attach(request("2", "a").ID, node(2))
		if want := "Attach " + request("2", "a").ID + " to node-2"; !slices.Contains(d.Calls(), want) {
			t.Errorf("the backend is called for %v, and not for %s", d.Calls(), want)
		}
	})
}

func TestOneCallAnswersAllConcurrentObservationsOfAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 8)
		d.SetMachine(node(1), backend.MachineStopped)
		release := d.Hold()
		for caller := range 5 {
			if _, err := d.observe(fmt.Sprint(caller), node(1)); !errors.Is(err, backend.Queued) {
				t.Errorf("caller %d is answered %v", caller, err)
			}
		}
		release()
		woken := slices.Sorted(slices.Values(d.woken()))
		if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(woken, want) || len(d.Calls()) != 1 {
			t.Errorf("%v are woken, after %v", woken, d.Calls())
		}
		if observed, err := d.observe("0", node(1)); err != nil || observed != backend.MachineStopped {
			t.Errorf("it is answered %q, %v", observed, err)
		}
	})
}

func TestACallerWithAnImmediateAnswerIsNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		var asking sync.WaitGroup
		for caller := range 3 {
			asking.Go(func() { _, _ = d.observe(fmt.Sprint(caller), node(1)) })
		}
		asking.Wait()
		if woken := d.woken(); len(woken) > 0 {
			t.Errorf("%v are woken", woken)
		}
	})
}

func TestAnOldObservationIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.SetMachine(node(1), backend.MachineStopped)
		release := d.Hold()
		if _, err := d.observe("one that doesn't come back", node(1)); !errors.Is(err, backend.Queued) {
			t.Fatalf("a call that is held was answered %v", err)
		}
		release()
		synctest.Wait()
		d.SetMachine(node(1), backend.MachineRuns)
		<-time.After(20 * time.Second)
		if machine, err := d.observe("another", node(1)); machine != backend.MachineRuns || err != nil {
			t.Errorf("a machine that runs by now is said to be %q (%v)", machine, err)
		}
	})
}

func TestACallerGetsNoAnswerToAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, id := newDesk(t, 1), request("1", "a").ID
		release := d.Hold()
		_ = d.provision(request("2", "a"))
		var asking sync.WaitGroup
		var made *backend.Volume
		var err error
		asking.Go(func() { made, err = d.served(id).Provision(context.Background(), request("1", "a")) })
		synctest.Wait()
		asking.Go(func() { _ = d.delete(id) })
		synctest.Wait()
		release()
		asking.Wait()
		if made == nil && err == nil {
			t.Error("the caller of an attach got the answer to the removal")
		}
	})
}

func TestABackendThatDoesNotAttachHasNoAttacherBehindAQueue(t *testing.T) {
	served := queue.New(t.Context(), nil).Serve(queue.Target{}, panicking{newDesk(t, 1)}, func() {})
	if _, can := backend.As[backend.Attacher](served); can {
		t.Error("the backend can't attach, and its queue offers to")
	}
}

func TestTheAnswerToAnAttachIsCollectedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, id := newDesk(t, 8), request("1", "a").ID
		must(t, d.provision(request("1", "a")))
		attacher, _ := backend.As[backend.Attacher](d.served(node(1).Name))
		asked := backend.AttachRequest{ID: id, Node: node(1), ReadOnly: true}
		if _, found, err := queue.EndedAttach(attacher, asked); found || err != nil {
			t.Errorf("before, there is an answer: %v", err)
		}
		release := d.Hold()
		if err := d.attach(id, node(1)); !errors.Is(err, backend.Queued) {
			t.Errorf("the attach is answered %v", err)
		}
		if _, found, err := queue.EndedAttach(attacher, asked); !found || !errors.Is(err, backend.Queued) {
			t.Errorf("while it goes on, there is an answer: %t, %v", found, err)
		}
		release()
		synctest.Wait()
		for name, other := range map[string]backend.AttachRequest{
			"another machine": {ID: id, Node: backend.NodeIdentity{Name: node(1).Name, ProviderID: "another"}, ReadOnly: true},
			"writing":         {ID: id, Node: node(1)},
		} {
			if _, found, err := queue.EndedAttach(attacher, other); found || err != nil {
				t.Errorf("about %s, there is an answer: %v", name, err)
			}
		}
		if attached, found, err := queue.EndedAttach(attacher, asked); !found || err != nil || attached.Metadata[backend.DeviceMetadata] == "" {
			t.Errorf("then, there is %v, %t, %v", attached, found, err)
		}
		if _, found, _ := queue.EndedAttach(attacher, asked); found {
			t.Error("it is returned twice")
		}
	})
}

func TestTheAnswerToADetachIsCollectedBeforeAnyOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, id := newDesk(t, 8), request("1", "a").ID
		must(t, d.provision(request("1", "a")))
		must(t, d.attach(id, node(1)))
		attacher, _ := backend.As[backend.Attacher](d.served(node(1).Name))
		if asked, err := queue.EndedDetach(attacher, id, node(1)); asked || err != nil {
			t.Errorf("before, there is an answer: %v", err)
		}
		release := d.Hold()
		if err := d.detach(id, node(1)); !errors.Is(err, backend.Queued) {
			t.Errorf("the detach is answered %v", err)
		}
		if asked, err := queue.EndedDetach(attacher, id, node(1)); !asked || !errors.Is(err, backend.Queued) {
			t.Errorf("while it goes on, there is an answer: %t, %v", asked, err)
		}
		release()
		synctest.Wait()
		if other, err := queue.EndedDetach(attacher, id, backend.NodeIdentity{Name: node(1).Name, ProviderID: "another"}); other || err != nil {
			t.Errorf("about another machine, there is an answer: %v", err)
		}
		if asked, err := queue.EndedDetach(attacher, id, node(1)); !asked || err != nil {
			t.Errorf("then, there is %t, %v", asked, err)
		}
		if asked, _ := queue.EndedDetach(attacher, id, node(1)); asked {
			t.Error("it is returned twice")
		}
	})
}

func TestAnAcceptedCallBlocksNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		for _, number := range []string{"1", "2", "3"} {
			must(t, d.provision(request(number, "a")))
		}
		d.AcceptAtOnce()
		release := d.Hold()
		for number, id := range []string{request("1", "a").ID, request("2", "a").ID, request("3", "a").ID} {
			if err := d.attach(id, node(number)); !errors.Is(err, backend.Queued) {
				t.Errorf("volume %s is answered %v", id, err)
			}
		}
		if begun := len(d.Calls()); begun != 6 {
			t.Errorf("there were %d calls while all attaches were waited for", begun)
		}
		if err := d.detach(request("1", "a").ID, node(7)); !errors.Is(err, backend.Queued) || len(d.Calls()) != 6 {
			t.Errorf("something else happens to a volume that is being attached: %v", err)
		}
		release()
		synctest.Wait()
		for number, id := range []string{request("1", "a").ID, request("2", "a").ID, request("3", "a").ID} {
			must(t, d.attach(id, node(number)))
		}
	})
}
