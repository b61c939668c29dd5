package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/recycle"
)

// recycling requests that the caller with a token empties the world's share.
func (w *world) recycling(token string) backend.Recycling {
	wanted := backend.Recycling{
		Volume: "scratch", Server: w.spec.Server, Path: string(w.spec.Path), Token: token, Data: "claim-1",
		Confirm: func(context.Context) error { return nil },
	}
	for _, option := range w.spec.MountOptions {
		wanted.MountOptions = append(wanted.MountOptions, string(option))
	}
	return wanted
}

// mustRecycle repeats the call as its callers do: a server may want a moment.
func mustRecycle(ctx context.Context, t *testing.T, kind *Kind, wanted backend.Recycling) {
	t.Helper()
	const tries = 100
	var err error
	for range tries {
		if err = kind.Recycle(ctx, wanted); !errors.Is(err, backend.Unavailable) && !errors.Is(err, backend.InProgress) {
			break
		}
	}
	must(t, err)
}

// fill puts into the share what a claim may leave behind.
func (w *world) fill(t *testing.T) {
	t.Helper()
	w.put(t, "data/deep/er/file", "data")
	w.put(t, ".hidden", "data")
	must(t, os.Symlink("../canary", filepath.Join(w.folder, "out")), os.Symlink("../../canary", filepath.Join(w.folder, "data", "out")))
}

func (w *world) mustBeEmpty(t *testing.T) {
	t.Helper()
	if entries, err := os.ReadDir(w.folder); len(entries) > 0 || err != nil {
		t.Errorf("the share holds %v, %v", entries, err)
	}
}

func TestARecycledDirectoryIsEmptyAndThere(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	mustRecycle(t.Context(), t, w.kind, w.recycling("one"))
	w.mustBeEmpty(t)
	mustRecycle(t.Context(), t, w.kind, w.recycling("one"))
}

func TestWhatIsNotConfirmedIsNotRecycled(t *testing.T) {
	w, refused := newWorld(t), errors.New("refused")
	w.fill(t)
	wanted := w.recycling("one")
	wanted.Confirm = func(context.Context) error { return refused }
	if err := w.kind.Recycle(t.Context(), wanted); !errors.Is(err, refused) {
		t.Errorf("it ended with %v", err)
	}
	w.mustHave(t, "data/deep/er/file", ".hidden", "out")
	w.mustLack(t, recycle.Folder)
}

func TestTheShareOfABackendIsNotRecycled(t *testing.T) {
	w := newWorld(t)
	mustProvision(t, w.open(t), requestFor("a", "data", "1"))
	if err := w.kind.Recycle(t.Context(), w.recycling("one")); !errors.Is(err, backend.Conflict) {
		t.Errorf("it ended with %v", err)
	}
	w.mustHave(t, "a-data-1", recordPath("pvc-1"))
}

func TestARecyclingOfManyFilesGoesOnWhereItWas(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.put(t, name+"/file", "data")
	}
	unfinished := 0
	for {
		err := w.kind.recycle(t.Context(), w.recycling("one"), 0)
		if err == nil {
			break
		}
		unfinished++
		if !errors.Is(err, backend.InProgress) || unfinished > 100 {
			t.Fatalf("it ended with %v", err)
		}
	}
	w.mustBeEmpty(t)
	if unfinished == 0 {
		t.Error("it was done at once")
	}
}

func TestARecyclingInterruptedAnywhereIsCompletedByAnother(t *testing.T) {
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		w.fill(t)
		interrupt()
		return w.kind.Recycle(t.Context(), w.recycling("one"))
	}, func(t *testing.T, w *world) {
		mustRecycle(t.Context(), t, w.kind, w.recycling("two"))
		w.mustBeEmpty(t)
	})
}

// Both act as the leader. The stale one read the volume
// object when it still bore its token.
func TestAStaleCallerRemovesNothingOfTheNextClaim(t *testing.T) { testLate(t, newWorld(t)) }

func testLate(t *testing.T, w *world) {
	w.fill(t)
	late := w.recycling("late")
	late.Confirm = func(ctx context.Context) error {
		w.overtake(ctx, t)
		return nil
	}
	if err := w.kind.Recycle(t.Context(), late); err == nil {
		t.Error("it went through")
	}
	w.mustHave(t, "data/file", "file")
	w.mustLack(t, recycle.Folder)
}

// As before, but the late one was listing already when the other was done.
func TestAnInterruptedCallerRemovesNothingOfTheNextClaim(t *testing.T) {
	for nth := 1; ; nth++ {
		w, seen := newWorld(t), 0
		w.fill(t)
		confirmed := false
		late := w.recycling("late")
		late.Confirm = func(context.Context) error { confirmed = true; return nil }
		w.proxy.Plan(func(nfstest.Call) nfstest.Fault {
			if !confirmed {
				return nfstest.None
			}
			seen++
			if seen == nth {
				w.overtake(t.Context(), t)
			}
			return nfstest.None
		})
		err := w.kind.Recycle(t.Context(), late)
		if seen < nth {
			must(t, err)
			return
		}
		w.mustHave(t, "data/file", "file")
		if t.Failed() {
			t.Fatalf("overtaken before call %d", nth)
		}
	}
}

// overtake has another empty the share, and a new claim use it. It goes around the
// proxy, which is busy.
func (w *world) overtake(ctx context.Context, t *testing.T) {
	t.Helper()
	if w.server != nil {
		w.spec.MountOptions = nfstest.Ports(w.server.Port())
	}
	mustRecycle(ctx, t, newKind(t, thisCluster, ""), w.recycling("next"))
	w.put(t, "data/file", "of the next claim")
	w.put(t, "file", "of the next claim")
}

func TestADirectoryThatCannotBeNamedIsNotRecycled(t *testing.T) {
	for name, change := range map[string]func(*backend.Recycling){
		"the root":        func(request *backend.Recycling) { request.Path = "/" },
		"a way out":       func(request *backend.Recycling) { request.Path = nfstest.Share + "/../other" },
		"no server":       func(request *backend.Recycling) { request.Server = "a b" },
		"no mount option": func(request *backend.Recycling) { request.MountOptions = []string{"port=1;reboot"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			wanted := w.recycling("one")
			change(&wanted)
			if err := w.kind.Recycle(t.Context(), wanted); !errors.Is(err, backend.Invalid) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func testRecycled(t *testing.T, g ganesha) {
	g.fill(t)
	g.put(t, strings.Repeat("deep/", 70)+"file", "data")
	for i := range 1500 {
		g.put(t, "file-"+strconv.Itoa(i), "data")
	}
	mustRecycle(t.Context(), t, g.kind, g.recycling("one"))
	g.mustBeEmpty(t)
}

func testRecyclingStopsAtMount(t *testing.T, g ganesha) {
	disk := filepath.Join(g.folder, "data", "disk")
	must(t, os.MkdirAll(disk, 0o755), unix.Mount("tmpfs", disk, "tmpfs", 0, ""))
	g.put(t, "data/disk/file", "data")
	if err := g.kind.Recycle(t.Context(), g.recycling("one")); err == nil || errors.Is(err, backend.InProgress) {
		t.Errorf("it ended with %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(g.folder, recycle.Folder, "one", "data", "disk", "file")); len(found) == 0 && !g.has("data/disk/file") {
		t.Error("the disk's file is gone")
	}
}

func testRecyclingSquashed(t *testing.T, w *world) {
	w.put(t, "of-a-pod/file", "data")
	w.put(t, "of-anonymous", "data")
	must(t, os.Chown(w.folder, nfstest.Anonymous, nfstest.Anonymous), os.Chown(filepath.Join(w.folder, "of-a-pod"), 1000, 1000))
	if err := w.kind.Recycle(t.Context(), w.recycling("one")); !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "nothing of it was") {
		t.Errorf("it ended with %v", err)
	}
	w.mustHave(t, "of-a-pod/file", "of-anonymous")
	must(t, os.Chown(filepath.Join(w.folder, "of-a-pod"), nfstest.Anonymous, nfstest.Anonymous))
	mustRecycle(t.Context(), t, w.kind, w.recycling("two"))
	w.mustBeEmpty(t)
}

func TestWhatIsNotConfirmedAgainIsNotMoved(t *testing.T) {
	w, refused, asked := newWorld(t), errors.New("refused"), 0
	w.fill(t)
	w.put(t, recycle.Folder+"/crashed/file", "data")
	wanted := w.recycling("one")
	wanted.Confirm = func(context.Context) error {
		asked++
		if asked > 1 {
			return refused
		}
		return nil
	}
	if err := w.kind.Recycle(t.Context(), wanted); !errors.Is(err, refused) {
		t.Errorf("it ended with %v", err)
	}
	w.mustHave(t, "data/deep/er/file", ".hidden", "out")
	w.mustLack(t, recycle.Folder+"/crashed")
}
