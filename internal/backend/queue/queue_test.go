package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

// desk is a queue before a fake backend.
type desk struct {
	*fake.Backend
	queue   *queue.Queue
	limit   int
	version string

	mu    sync.Mutex
	names []string
}

func newDesk(t *testing.T, limit int) *desk {
	return &desk{Backend: fake.New(), queue: queue.New(t.Context(), nil), limit: limit}
}

func (d *desk) provision(request backend.Request) error {
	_, err := d.served(request.ID).Provision(context.Background(), request)
	return err
}

func (d *desk) delete(id string) error { return d.served(id).Delete(context.Background(), id) }

func (d *desk) served(id string) backend.Backend {
	return d.queue.Serve(queue.Target{Name: "disks", Version: d.version, Limit: d.limit}, d.Backend, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.names = append(d.names, id)
	})
}

// woken are the volumes of callers that were woken.
func (d *desk) woken() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names
}

// comeWhenWoken repeats the calls of all woken callers, until no caller is woken.
func (d *desk) comeWhenWoken() {
	for done := 0; done < len(d.woken()); done++ {
		_ = d.provisionAgain(d.woken()[done])
	}
}

func (d *desk) provisionAgain(id string) error {
	uid := strings.TrimPrefix(id, "pvc-")
	return d.provision(request(uid, uid[:1]))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func request(uid, namespace string) backend.Request {
	request := backendtest.Request(uid)
	request.Claim.Namespace = namespace
	return request
}

func TestAServedBackendKeepsTheContract(t *testing.T) {
	backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
		d := newDesk(t, 2)
		return d.served(""), d.Has
	})
}

func TestAnImmediateAnswerIsReturnedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		if err := d.provision(request("1", "a")); err != nil {
			t.Errorf("it answers %v", err)
		}
		if woken := d.woken(); len(woken) > 0 {
			t.Errorf("%v are woken", woken)
		}
	})
}

func TestAnInProgressAnswerIsVoidOnceTheVolumeChanged(t *testing.T) {
	for name, asks := range map[string]bool{"while a caller waits for it": true, "while none does": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, 1)
				d.FailNext(backend.InProgress.Errorf("the agent is at work"))
				release := d.Hold()
				if err := d.provision(request("1", "a")); !errors.Is(err, backend.Queued) {
					t.Fatalf("a call that is held answers %v", err)
				}
				d.queue.Discard("pvc-1")
				if asks {
					go func() { _ = d.provision(request("1", "a")) }()
					synctest.Wait()
				}
				release()
				if woken := d.woken(); len(woken) == 0 {
					t.Error("no caller is woken")
				}
				must(t, d.provision(request("1", "a")))
			})
		})
	}
}

func TestAnInProgressAnswerIsReturnedWhereNothingChangedSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.FailNext(backend.InProgress.Errorf("the agent is at work"))
		release := d.Hold()
		_ = d.provision(request("1", "a"))
		release()
		synctest.Wait()
		if err := d.provision(request("1", "a")); !errors.Is(err, backend.InProgress) {
			t.Errorf("it answers %v", err)
		}
		d.queue.Discard("pvc-1")
		must(t, d.provision(request("1", "a")))
	})
}

func TestASlowCallReturnsQueuedAndWakesItsCallerForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.FailNext(backend.Exhausted.Errorf("full"))
		release := d.Hold()
		began := time.Now()
		if err := d.provision(request("1", "a")); !errors.Is(err, backend.Queued) {
			t.Errorf("it answers %v", err)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the caller was held for %s", waited)
		}
		release()
		if !slices.Equal(d.woken(), []string{request("1", "a").ID}) {
			t.Errorf("%v are woken", d.woken())
		}
		if err := d.provision(request("1", "a")); !errors.Is(err, backend.Exhausted) {
			t.Errorf("repeated, it returns %v", err)
		}
		if calls := d.Calls(); len(calls) != 1 {
			t.Errorf("the backend was called for %v", calls)
		}
	})
}

func TestNoMoreCallsRunThanTheBackendAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 3)
		release := d.Hold()
		for i := range 10 {
			if err := d.provision(request(fmt.Sprint(i), fmt.Sprint(i))); !errors.Is(err, backend.Queued) {
				t.Errorf("it answers %v", err)
			}
		}
		if calls := d.Calls(); len(calls) != 3 {
			t.Errorf("the backend was called for %v", calls)
		}
		release()
		d.comeWhenWoken()
		if d.Len() != 10 {
			t.Errorf("%d volumes are made", d.Len())
		}
	})
}

func TestNamespacesGetSlotsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		release := d.Hold()
		for _, uid := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
			_ = d.provision(request(uid, uid[:1]))
		}
		release()
		d.comeWhenWoken()
		want := []string{"a1", "a2", "b1", "c1", "a3", "b2"}
		for i := range want {
			want[i] = "Provision pvc-" + want[i]
		}
		if calls := d.Calls(); !slices.Equal(calls, want) {
			t.Errorf("the backend was called for %v", calls)
		}
	})
}

func TestACallThatWaitedForASlotIsDecidedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		must(t, d.provision(request("1", "a")))
		release := d.Hold()
		_ = d.provision(request("2", "a"))
		_ = d.delete(request("1", "a").ID)
		release()
		if !slices.Contains(d.woken(), request("1", "a").ID) {
			t.Error("the caller of the deletion is not woken")
		}
		if !d.Has(request("1", "a").ID) {
			t.Error("the volume is removed without another decision")
		}
	})
}

func TestAnUnusedSlotGoesToTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		release := d.Hold()
		_ = d.provision(request("1", "a"))
		_ = d.delete("gone")
		release()
		<-time.After(time.Minute)
		must(t, d.provision(request("2", "a")))
		if calls := d.Calls(); slices.Contains(calls, "Delete gone") {
			t.Errorf("the backend was called for %v", calls)
		}
	})
}

func TestAHangingBackendBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging, other := newDesk(t, 1), fake.New()
		release := hanging.Hold()
		defer release()
		_ = hanging.provision(request("1", "a"))
		served := hanging.queue.Serve(queue.Target{Name: "others"}, other, func() {})
		if _, err := served.Provision(t.Context(), request("2", "a")); err != nil {
			t.Errorf("the other backend answers %v", err)
		}
	})
}

func TestACallThatHangsEndsSomeTimeWithItsOutcomeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.Hold()
		_ = d.provision(request("1", "a"))
		<-time.After(3 * time.Minute)
		if len(d.woken()) != 1 {
			t.Errorf("%v are woken", d.woken())
		}
	})
}

func TestADeletionWaitsForTheCallBeforeItAndMakesItsAnswerVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, id := newDesk(t, 2), request("1", "a").ID
		release := d.Hold()
		_ = d.provision(request("1", "a"))
		if err := d.delete(id); !errors.Is(err, backend.Queued) {
			t.Errorf("while the volume is being made, its deletion answers %v", err)
		}
		release()
		if !slices.Contains(d.woken(), id) {
			t.Error("the caller of the deletion is not woken")
		}
		if err := d.delete(id); err != nil || d.Has(id) {
			t.Errorf("it answers %v, and the volume is there: %t", err, d.Has(id))
		}
		if err := d.provision(request("1", "a")); err != nil || !d.Has(id) {
			t.Errorf("repeated, it returns %v without making the volume", err)
		}
	})
}

func TestTheAnswerForAnEarlierSpecIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.FailNext(backend.Invalid.Errorf("no such export"))
		release := d.Hold()
		_ = d.provision(request("1", "a"))
		release()
		synctest.Wait()
		d.version = "2"
		must(t, d.provision(request("1", "a")))
	})
}

func TestTheAnswerToAnotherRequestIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		release := d.Hold()
		_ = d.provision(request("1", "a"))
		release()
		synctest.Wait()
		other := request("1", "b")
		if err := d.provision(other); !errors.Is(err, backend.Conflict) {
			t.Errorf("another claim is answered %v", err)
		}
	})
}

func TestAPanicOfABackendIsAnErrorOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := queue.New(t.Context(), nil).Serve(queue.Target{}, panicking{fake.New()}, func() {})
		if err := served.Delete(t.Context(), "v"); err == nil || backend.KindOf(err) != "" {
			t.Errorf("it answers %v", err)
		}
	})
}

type panicking struct{ backend.Backend }

func (panicking) Delete(context.Context, string) error { panic("bad reply") }

func TestAbilitiesAreFoundBehindAQueue(t *testing.T) {
	d := newDesk(t, 1)
	if _, can := backend.As[backend.Prober](d.served("v")); !can {
		t.Error("the backend can be probed, but As does not find that")
	}
	if _, can := backend.As[backend.Lister](queue.New(t.Context(), nil).Serve(queue.Target{}, panicking{d}, func() {})); can {
		t.Error("the backend can't list, and says so")
	}
}

func TestAVolumeGrowsThroughAQueueWhereItCanGrow(t *testing.T) {
	d := newDesk(t, 1)
	expander, can := backend.As[backend.Expander](d.served("v"))
	if _, passedBy := expander.(*desk); !can || passedBy {
		t.Errorf("the backend can grow volumes (seen: %t), and the queue is passed by (%t)", can, passedBy)
	}
	fixed := queue.New(t.Context(), nil).Serve(queue.Target{}, panicking{d}, func() {})
	if _, can := backend.As[backend.Expander](fixed); can {
		t.Error("the backend can't grow volumes, and its queue offers to")
	}
	if _, err := backend.Expand(t.Context(), fixed, backend.ExpandRequest{ID: "v", Capacity: backendtest.Request("1").Capacity}); !errors.Is(err, backend.Invalid) {
		t.Errorf("without the ability it returns %v", err)
	}
}

func TestALongGrowthIsAnsweredWhenItIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, asked := newDesk(t, 1), request("1", "a")
		_ = d.provision(asked)
		release := d.Hold()
		expand := func(size string) (backend.Expansion, error) {
			return backend.Expand(context.Background(), d.served(asked.ID), backend.ExpandRequest{ID: asked.ID, Capacity: resource.MustParse(size)})
		}
		if _, err := expand("2Mi"); !errors.Is(err, backend.Queued) {
			t.Errorf("it answers %v", err)
		}
		if _, err := expand("3Mi"); !errors.Is(err, backend.Queued) {
			t.Errorf("another growth is answered %v before the first has ended", err)
		}
		release()
		d.woken()
		if expanded, err := expand("3Mi"); err != nil || expanded.Capacity.Cmp(resource.MustParse("3Mi")) != 0 {
			t.Errorf("it answers %v, %v", expanded, err)
		}
	})
}

// undoer is a backend whose volumes are found by their requests alone.
type undoer struct {
	backend.Backend
	undone *[]backend.Request
}

func (u undoer) Undo(_ context.Context, request backend.Request) error {
	*u.undone = append(*u.undone, request)
	return nil
}

func TestAnUndoHasTheRequestOfItsProvision(t *testing.T) {
	d, undone := newDesk(t, 1), []backend.Request{}
	want := request("1", "a")
	want.Parameters = map[string]string{"tier": "fast"}
	served := d.queue.Serve(queue.Target{Name: "disks", Limit: 1}, undoer{d.Backend, &undone}, func() {})
	if err := backend.Undo(t.Context(), served, want); err != nil || len(undone) != 1 || undone[0].Parameters["tier"] != "fast" {
		t.Errorf("it has %v, %v", undone, err)
	}
}

func TestABackendThatFindsVolumesByTheirIDsDeletesThem(t *testing.T) {
	d := newDesk(t, 1)
	must(t, d.provision(request("1", "a")))
	if err := backend.Undo(t.Context(), d.served("1"), request("1", "a")); err != nil || d.Len() > 0 {
		t.Errorf("it has %d volumes, %v", d.Len(), err)
	}
}
