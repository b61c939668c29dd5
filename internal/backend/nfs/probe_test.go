package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestAShareThatServesIsFoundToServe(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		must(t, w.open(t).Probe(t.Context()))
	}
	if left, err := os.ReadDir(filepath.Join(w.folder, temporary)); len(left) > 0 || err != nil {
		t.Errorf("the trial left %v, %v", left, err)
	}
}

func TestAShareThatDoesNotServeSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		interrupt func(w *world)
		advice    string
	}{
		"an export that isn't there": {func(w *world) { w.spec.Path = "/exports/other" }, "add it to the server's exports"},
		"a server that is stopped":   {func(w *world) { w.proxy.Close() }, "can't be reached"},
		"a server that is silent": {func(w *world) {
			w.kind.limits.Call = time.Second
			w.proxy.Plan(always(nfstest.DeadSilence))
		}, "doesn't answer"},
		"a share that is read-only": {func(w *world) { w.server.ReadOnly.Store(true) }, "export it with rw"},
		"a server without NFS 3": {func(w *world) {
			w.spec.Server, w.spec.MountOptions = "127.255.255.254", nil
		}, "can't be reached"},
		"a name that doesn't resolve": {func(w *world) {
			w.kind.limits.Call = time.Second // where no name server answers
			w.spec.Server = "no-such-host.invalid"
		}, "doesn't resolve"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.interrupt(w)
			err := w.open(t).Probe(t.Context())
			if !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), test.advice) {
				t.Errorf("the probe says: %v", err)
			}
		})
	}
}

func TestTheProbeReportsASquashedRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the server gives files away")
	}
	w := newWorld(t)
	w.server.Squash.Store(true)
	err := w.open(t).Probe(t.Context())
	if !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "no_root_squash") {
		t.Errorf("the probe says: %v", err)
	}
	asSquashed := func(spec *stowagev1alpha1.NFSBackend) {
		spec.Access.UID, spec.Access.GID = nfstest.Anonymous, nfstest.Anonymous
	}
	must(t, w.open(t, asSquashed).Probe(t.Context()))
}

func TestNothingIsWrittenWhereAShareShouldBeMounted(t *testing.T) {
	mounts := t.TempDir()
	w := newWorld(t)
	w.folder = filepath.Join(mounts, "share")
	must(t, os.Mkdir(w.folder, 0o755))
	opened := w.openAs(t, newKind(t, thisCluster, mounts))
	if err := opened.Probe(t.Context()); !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "in the manager's pod") {
		t.Errorf("the probe says: %v", err)
	}
	if _, err := opened.Provision(t.Context(), requestFor("a", "data", "1")); !errors.Is(err, backend.Unavailable) {
		t.Errorf("provisioning ended with %v", err)
	}
	if written, err := os.ReadDir(w.folder); len(written) > 0 || err != nil {
		t.Errorf("there is %v, %v", written, err)
	}
}

func TestTemporaryEntriesAreSweptOnceTheyAreOld(t *testing.T) {
	w := newWorld(t)
	w.put(t, temporary+"/pvc-1-old", "half a record")
	w.put(t, temporary+"/pvc-1-new", "half a record")
	must(t, os.MkdirAll(filepath.Join(w.folder, temporary, trialPrefix+"old"), 0o755))
	before := time.Now().Add(-2 * leftAfter)
	for _, old := range []string{"pvc-1-old", trialPrefix + "old"} {
		must(t, os.Chtimes(filepath.Join(w.folder, temporary, old), before, before))
	}
	must(t, w.open(t).Probe(t.Context()))
	w.mustLack(t, temporary+"/pvc-1-old", temporary+"/"+trialPrefix+"old")
	w.mustHave(t, temporary+"/pvc-1-new")
}

func TestSpaceIsTheServers(t *testing.T) {
	w := newWorld(t)
	w.server.Size.Store(10 << 30)
	space, err := w.open(t).Space(t.Context())
	if err != nil || space.Total.String() != "10Gi" || space.Used.String() != "5Gi" {
		t.Errorf("there is %v, %v", space, err)
	}
	w.server.Size.Store(1<<64 - 1)
	if space, err := w.open(t).Space(t.Context()); err != nil || space.Total.Sign() <= 0 {
		t.Errorf("of a server without bounds there is %v, %v", space, err)
	}
}

func TestASilentServerBlocksNoOther(t *testing.T) {
	silent, well := newWorld(t), newWorld(t)
	silent.kind.limits.Call, silent.kind.limits.SlotWait = time.Hour, 100*time.Millisecond
	well.kind, well.spec.Server = silent.kind, "localhost"
	silent.proxy.Plan(always(nfstest.DeadSilence))
	opened := silent.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan error, silent.kind.limits.Parallel)
	for range silent.kind.limits.Parallel {
		go func() { stuck <- opened.Probe(ctx) }()
	}
	awaitNoSlot(t, opened)

	if err := opened.Probe(t.Context()); !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "none ends") {
		t.Errorf("one more gets the answer %v", err)
	}
	must(t, well.open(t).Probe(t.Context()))
	cancel()
	for range silent.kind.limits.Parallel {
		if err := <-stuck; !errors.Is(err, backend.Unavailable) {
			t.Errorf("a cancelled call ended with %v", err)
		}
	}
	silent.proxy.Plan(nil)
	must(t, opened.Probe(t.Context()))
}

// awaitNoSlot waits until all slots on a server are in use.
func awaitNoSlot(t *testing.T, opened *nfsBackend) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for len(opened.share.Slots) < cap(opened.share.Slots) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the slots aren't in use")
		}
	}
}

func always(fault nfstest.Fault) func(nfstest.Call) nfstest.Fault {
	return func(nfstest.Call) nfstest.Fault { return fault }
}

func TestAProbeSweepsAwayALittleOfWhatCrashesLeft(t *testing.T) {
	const left, probes = 10 * maxSwept, 11
	folder := filepath.Join(t.TempDir(), "aside")
	must(t, os.Mkdir(folder, 0o700))
	mounttest.Tmpfs(t, folder)
	for i := range left {
		must(t, os.WriteFile(filepath.Join(folder, idOf(i)), nil, 0o600))
	}
	dir, err := mounted.Open(folder)
	must(t, err)
	defer dir.Close()
	for probe := range probes {
		must(t, sweep(t.Context(), dir, time.Now().Add(time.Hour)))
		entries, err := os.ReadDir(folder)
		must(t, err)
		if want := max(0, left-(probe+1)*maxSwept); len(entries) != want {
			t.Errorf("after %d probes %d files are left, not %d", probe+1, len(entries), want)
		}
	}
}
