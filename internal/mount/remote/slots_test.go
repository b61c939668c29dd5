package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
)

func server(name string) peer { return peer{"address of " + name, name} }

// fill takes slots for a server until it gets none, and returns why.
func fill(t *testing.T, slots *Slots, name string, limit limits) (taken []*slot, why error) {
	t.Helper()
	for {
		at, err := slots.acquire(t.Context(), server(name), limit, false)
		if err != nil {
			return taken, err
		}
		taken = append(taken, at)
	}
}

func TestASilentServerHasNoMoreCallsThanItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{}
		mounts, err := fill(t, slots, "nfs1", toMount)
		if len(mounts) != toMount.server || !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "server nfs1:") {
			t.Errorf("%d calls began, then %v", len(mounts), err)
		}
		began := time.Now()
		if _, err := slots.acquire(t.Context(), server("nfs1"), toMount, false); !errors.Is(err, ErrBusy) || time.Since(began) > 0 {
			t.Errorf("one more waited %s, then %v", time.Since(began), err)
		}
		asks, err := fill(t, slots, "nfs1", toAsk)
		if len(asks) != toAsk.server-toMount.server || !errors.Is(err, ErrBusy) {
			t.Errorf("%d calls more can unmount, then %v", len(asks), err)
		}
		detaches, _ := fill(t, slots, "nfs1", toDetach)
		if len(detaches) != toDetach.server-toAsk.server {
			t.Errorf("%d calls more can detach", len(detaches))
		}
		for _, other := range []string{"nfs2", "nfs3"} {
			if _, err := slots.acquire(t.Context(), server(other), toMount, false); err != nil {
				t.Errorf("server %s waits for another: %v", other, err)
			}
		}
	})
}

func TestSilentServersLeaveSlotsToThoseThatAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{}
		known, err := slots.acquire(t.Context(), server("nfs"), toMount, false)
		if err != nil {
			t.Fatal(err)
		}
		known.setAnswers(true)
		known.release()
		silent := 0
		for i := range 100 {
			taken, err := fill(t, slots, fmt.Sprint("silent", i), toDetach)
			if silent += len(taken); len(taken) == 0 {
				if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint("silent", i)) {
					t.Errorf("got %v", err)
				}
				break
			}
		}
		if silent != toDetach.silent {
			t.Errorf("%d calls wait for silent servers", silent)
		}
		if _, err := slots.acquire(t.Context(), server("unknown"), toMount, false); !errors.Is(err, ErrBusy) {
			t.Errorf("a server that never answered: %v", err)
		}
		if _, err := slots.acquire(t.Context(), server("nfs"), toMount, false); err != nil {
			t.Errorf("a server that answers: %v", err)
		}
	})
}

func TestACallWaitsForAServerThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{}
		taken, _ := fill(t, slots, "nfs", limits{4, 32, 48})
		for _, old := range taken {
			old.release()
		}
		for range toMount.server {
			at, err := slots.acquire(t.Context(), server("nfs"), toMount, false)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Second, at.release)
		}
		began := time.Now()
		if _, err := slots.acquire(t.Context(), server("nfs"), toMount, false); err != nil || time.Since(began) != time.Second {
			t.Errorf("it waited %s, then %v", time.Since(began), err)
		}
	})
}

func TestACancelledCallWaitsForNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{}
		for range toMount.server {
			if _, err := slots.acquire(t.Context(), server("nfs"), toMount, false); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := slots.acquire(ctx, server("nfs"), toMount, false); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRemovalsLeaveSlotsToMounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{}
		for range maxRemovals {
			if _, err := slots.acquire(t.Context(), server("nfs"), toMount, true); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := slots.acquire(t.Context(), server("nfs"), toMount, true); !errors.Is(err, ErrBusy) {
			t.Errorf("one more removal: %v", err)
		}
		if _, err := slots.acquire(t.Context(), server("nfs"), toMount, false); err != nil {
			t.Errorf("a mount: %v", err)
		}
	})
}

func TestServersThatWereNamedOnceAreForgotten(t *testing.T) {
	slots := &Slots{}
	for i := range 10 * maxKnown {
		at, err := slots.acquire(t.Context(), server(fmt.Sprint(i)), toMount, false)
		if err != nil {
			t.Fatal(err)
		}
		at.release()
	}
	if len(slots.servers) > maxKnown {
		t.Errorf("%d are remembered", len(slots.servers))
	}
}

func TestACallIsForTheServerOfWhatItIsAbout(t *testing.T) {
	table := mount.Table{
		{ID: 1, Path: "/", Root: "/", FSType: "ext4", Source: "/dev/sda1"},
		{ID: 2, Parent: 1, Path: "/stages/a", Root: "/", FSType: "nfs4", Source: "nfs.example.com:/srv/a", Address: "10.0.0.1"},
		{ID: 3, Parent: 1, Path: "/pods/b/mount", Root: "/v", FSType: "nfs", Source: "[fd00::1]:/srv", Address: "fd00::1"},
	}
	for _, each := range []struct {
		request request
		want    peer
	}{
		{request{Ask: true, Target: "/stages/a"}, peer{"10.0.0.1", "nfs.example.com"}},
		{request{Bind: "/stages/a/sub/dir", Target: "/pods/c/mount"}, peer{"10.0.0.1", "nfs.example.com"}},
		{request{Unmount: true, Target: "/pods/b/mount"}, peer{"fd00::1", "[fd00::1]"}},
		{request{Ask: true, Target: "/elsewhere"}, peer{"/dev/sda1", "/dev/sda1"}},
	} {
		if got := each.request.peer(table); got != each.want {
			t.Errorf("%+v: got %v", each.request, got)
		}
	}
}
