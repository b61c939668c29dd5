package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
)

// exportsVariable names the folder of exports to the process that runs apart.
const exportsVariable = "STOWAGE_TEST_EXPORTS"

// TestGanesha runs itself again with a network and mounts of its own, where no
// port is taken and nothing is left behind.
func TestGanesha(t *testing.T) {
	if exports := os.Getenv(exportsVariable); exports != "" {
		testGanesha(t, exports)
		return
	}
	if missing := nfstest.MissingForGanesha(); missing != "" {
		t.Skipf("needs a real NFS server, in namespaces of its own: %s is missing", missing)
	}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestGanesha$", "-test.v")
	again.Env = append(os.Environ(), exportsVariable+"="+besideCanary(t))
	nfstest.Apart(again)
	output, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("apart, the tests ended with %v:\n%s", err, output)
	}
	t.Logf("%s", output)
}

// ganesha is a share of a Ganesha's.
type ganesha struct {
	*world
	server *nfstest.Ganesha
}

func testGanesha(t *testing.T, exports string) {
	server, err := nfstest.StartGanesha(t.Context(), exports)
	must(t, err)
	t.Cleanup(func() { _ = server.Process.Kill() })
	awaitReady(t, exports)
	shares := 0
	on := func(test func(t *testing.T, g ganesha)) func(t *testing.T) {
		return func(t *testing.T) {
			shares++
			test(t, ganesha{newShare(t, exports, nfstest.Volumes, strconv.Itoa(shares)), server})
		}
	}
	t.Run("the contract is kept", func(t *testing.T) {
		backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
			shares++
			w := newShare(t, exports, nfstest.Volumes, strconv.Itoa(shares))
			return w.open(t), w.hasVolume
		})
	})
	t.Run("the probe finds it well", on(func(t *testing.T, g ganesha) { must(t, g.open(t).Probe(t.Context())) }))
	t.Run("it is reached over IPv6", on(func(t *testing.T, g ganesha) {
		g.spec.Server = "::1"
		must(t, g.open(t).Probe(t.Context()))
	}))
	t.Run("a directory gets an owner", on(testOwned))
	t.Run("a copy keeps setuid and setgid", on(testCopiedModes))
	t.Run("a tree goes with its volume", on(testTreeRemoved))
	t.Run("a deletion stops at a mount", on(testStopsAtMount))
	t.Run("an archive is kept", on(testArchived))
	t.Run("a recycled directory is empty", on(testRecycled))
	t.Run("recycling stops at a mount", on(testRecyclingStopsAtMount))
	t.Run("a stale caller removes nothing of the next claim", on(func(t *testing.T, g ganesha) { testLate(t, g.world) }))
	t.Run("where root is squashed nothing is half recycled", func(t *testing.T) {
		testRecyclingSquashed(t, newShare(t, exports, nfstest.Squashed, "scratch"))
	})
	t.Run("a share replaced is opened again", on(testReplaced))
	t.Run("a full share says so", on(testFull))
	t.Run("calls to a frozen server end", on(testFrozen))
	t.Run("where root is squashed nothing is half deleted", func(t *testing.T) { testSquashed(t, newShare(t, exports, nfstest.Squashed, "")) })
	t.Run("with squashed root an inspection continues where it was", func(t *testing.T) {
		testSquashedInSlices(t, newShare(t, exports, nfstest.Squashed, ""))
	})
	t.Run("the probe reports a squashed root", func(t *testing.T) {
		expectProbe(t, newShare(t, exports, nfstest.Squashed, ""), "no_root_squash")
	})
	t.Run("the probe reports a read-only share", func(t *testing.T) {
		expectProbe(t, newShare(t, exports, nfstest.Fixed, ""), "export it with rw")
	})
	t.Run("the probe reports a share that isn't exported", func(t *testing.T) {
		expectProbe(t, newShare(t, exports, "other", ""), "add it to the server's exports")
	})
}

// newShare is a folder of an export, reached through rpcbind.
func newShare(t *testing.T, exports, export, folder string) *world {
	t.Helper()
	w := &world{folder: filepath.Join(exports, export, folder), kind: newKind(t, thisCluster, "")}
	must(t, os.MkdirAll(w.folder, 0o755))
	w.spec = stowagev1alpha1.NFSBackend{Server: "127.0.0.1", Path: stowagev1alpha1.AbsolutePath(w.folder)}
	return w
}

func awaitReady(t *testing.T, exports string) {
	t.Helper()
	opened := newShare(t, exports, nfstest.Volumes, "").open(t)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for err := opened.Probe(t.Context()); err != nil; err = opened.Probe(t.Context()) {
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(exports, "ganesha.log"))
			t.Fatalf("nfs-ganesha doesn't get ready: %v\n%s", err, log)
		}
		<-tick.C
	}
}

func expectProbe(t *testing.T, w *world, advice string) {
	t.Helper()
	if err := w.open(t).Probe(t.Context()); !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), advice) {
		t.Errorf("the probe says: %v", err)
	}
}

func testOwned(t *testing.T, g ganesha) {
	g.spec.Access = stowagev1alpha1.NFSAccess{UID: 1000, GID: 2000, Mode: "2770"}
	mustProvision(t, g.open(t), requestFor("a", "data", "1"))
	stat := syscall.Stat_t{}
	must(t, syscall.Stat(filepath.Join(g.folder, "a-data-1"), &stat))
	if stat.Uid != 1000 || stat.Gid != 2000 || stat.Mode&0o7777 != 0o2770 {
		t.Errorf("it is of %d:%d, with mode %#o", stat.Uid, stat.Gid, stat.Mode)
	}
}

func testCopiedModes(t *testing.T, g ganesha) {
	opened := g.open(t)
	mustProvision(t, opened, backendtest.Request("1"))
	g.put(t, data+"/tool", "program")
	must(t, os.Chown(g.folder+"/"+data+"/tool", 1000, 1000))
	must(t, syscall.Chmod(g.folder+"/"+data+"/tool", 0o6755))

	made := mustSnapshot(t, opened)

	stat := syscall.Stat_t{}
	must(t, syscall.Stat(g.folder+"/.stowage/snapshots/"+made.Handle+"/tool", &stat))
	if stat.Uid != 1000 || stat.Gid != 1000 || stat.Mode&0o7777 != 0o6755 {
		t.Errorf("it is of %d:%d, with mode %#o", stat.Uid, stat.Gid, stat.Mode)
	}
}

func testTreeRemoved(t *testing.T, g ganesha) {
	opened := g.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	mustProvision(t, opened, requestFor("b", "data", "2"))
	for i := range 1500 {
		g.put(t, "a-data-1/many/"+strconv.Itoa(i), "data")
	}
	g.put(t, "a-data-1/"+strings.Repeat("deep/", 70)+"file", "data")
	must(t, os.Symlink("../b-data-2", filepath.Join(g.folder, "a-data-1", "link")))
	g.put(t, "b-data-2/file", "data")
	err := opened.Delete(t.Context(), "pvc-1")
	for deadline := time.Now().Add(patience); errors.Is(err, backend.InProgress) && time.Now().Before(deadline); {
		err = opened.Delete(t.Context(), "pvc-1") // a busy machine takes more than one slice
	}
	must(t, err)
	g.mustLack(t, "a-data-1", recordPath("pvc-1"), deleting+"/pvc-1")
	g.mustHave(t, "b-data-2/file")
}

func testStopsAtMount(t *testing.T, g ganesha) {
	opened := g.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	disk := filepath.Join(g.folder, "a-data-1", "disk")
	must(t, os.Mkdir(disk, 0o755), unix.Mount("tmpfs", disk, "tmpfs", 0, ""))
	g.put(t, "a-data-1/disk/file", "data")
	if err := opened.Delete(t.Context(), "pvc-1"); err == nil || errors.Is(err, backend.InProgress) {
		t.Errorf("deleting ended with %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(g.folder, deleting, "pvc-1", "disk", "file")); len(found) == 0 && !g.has("a-data-1/disk/file") {
		t.Error("the disk's file is gone")
	}
}

func testArchived(t *testing.T, g ganesha) {
	opened := g.open(t, onDelete(stowagev1alpha1.NFSArchive))
	mustProvision(t, opened, requestFor("a", "data", "1"))
	g.put(t, "a-data-1/file", "data")
	must(t, opened.Delete(t.Context(), "pvc-1"))
	g.mustHave(t, archived+"/a_data_pvc-1/file")
}

func testReplaced(t *testing.T, g ganesha) {
	opened := g.open(t)
	must(t, opened.Probe(t.Context()), os.Rename(g.folder, g.folder+"-old"), os.Mkdir(g.folder, 0o755))
	must(t, os.RemoveAll(g.folder+"-old"))
	if err := opened.Probe(t.Context()); err != nil && !errors.Is(err, backend.Unavailable) {
		t.Errorf("the probe says: %v", err)
	}
	mustProvision(t, opened, requestFor("a", "data", "1"))
	g.mustHave(t, "a-data-1")
}

func testFull(t *testing.T, g ganesha) {
	opened := g.open(t)
	must(t, opened.Probe(t.Context()))
	exports, stat := filepath.Dir(filepath.Dir(g.folder)), unix.Statfs_t{}
	limit := func(inodes uint64) error {
		return unix.Mount("", exports, "", unix.MS_REMOUNT, "nr_inodes="+strconv.FormatUint(inodes, 10))
	}
	must(t, unix.Statfs(exports, &stat), limit(stat.Files-stat.Ffree))
	_, err := opened.Provision(t.Context(), requestFor("a", "data", "1"))
	must(t, limit(stat.Files))
	if !errors.Is(err, backend.Exhausted) {
		t.Errorf("provisioning ended with %v", err)
	}
	mustProvision(t, opened, requestFor("a", "data", "1"))
}

func testFrozen(t *testing.T, g ganesha) {
	g.kind.limits.Call = 3 * time.Second
	opened := g.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	must(t, g.server.Freeze())
	defer func() { must(t, g.server.Thaw()) }()
	if err := opened.Probe(t.Context()); !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "doesn't answer") {
		t.Errorf("the probe says: %v", err)
	}
	if err := opened.Delete(t.Context(), "pvc-1"); !errors.Is(err, backend.Unavailable) {
		t.Errorf("deleting ended with %v", err)
	}
	must(t, g.server.Thaw(), opened.Delete(t.Context(), "pvc-1"))
}

// testSquashedInSlices continues an inspection, one entry with each call, and ends with what is
// refused; when that is mended, it goes on there.
func testSquashedInSlices(t *testing.T, w *world) {
	w.spec.Access = stowagev1alpha1.NFSAccess{UID: nfstest.Anonymous, GID: nfstest.Anonymous, Mode: "0777"}
	opened := w.open(t)
	opened.share.Slice = 0
	mustProvision(t, opened, requestFor("a", "slices", "2"))
	volume := filepath.Join(w.folder, "a-slices-2")
	for i := range 20 {
		w.put(t, fmt.Sprintf("a-slices-2/%d/deep/file", i), "data")
	}
	must(t, filepath.WalkDir(volume, func(path string, _ fs.DirEntry, _ error) error {
		return os.Chown(path, nfstest.Anonymous, nfstest.Anonymous)
	}))
	must(t, os.Chown(filepath.Join(volume, "7", "deep"), 1000, 1000))
	end := func() (slices int, err error) {
		err = backend.InProgress
		for deadline := time.Now().Add(patience); errors.Is(err, backend.InProgress) && time.Now().Before(deadline); slices++ {
			err = opened.Delete(t.Context(), "pvc-2")
		}
		return slices, err
	}

	slices, err := end()

	if slices < 2 || !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "nothing of it was") {
		t.Errorf("deleting ended after %d slices with %v", slices, err)
	}
	for i := range 20 {
		w.mustHave(t, fmt.Sprintf("a-slices-2/%d/deep/file", i))
	}
	must(t, os.Chown(filepath.Join(volume, "7", "deep"), nfstest.Anonymous, nfstest.Anonymous))
	_, err = end()
	must(t, err)
	w.mustLack(t, "a-slices-2", deleting+"/pvc-2", inspectionPath("pvc-2"))
}

func testSquashed(t *testing.T, w *world) {
	w.spec.Access = stowagev1alpha1.NFSAccess{UID: nfstest.Anonymous, GID: nfstest.Anonymous, Mode: "0777"}
	opened := w.open(t)
	must(t, opened.Probe(t.Context()))
	mustProvision(t, opened, requestFor("a", "data", "1"))
	w.put(t, "a-data-1/of-anonymous/file", "data")
	w.put(t, "a-data-1/of-a-pod/file", "data")
	ofAnonymous, ofPod := filepath.Join(w.folder, "a-data-1", "of-anonymous"), filepath.Join(w.folder, "a-data-1", "of-a-pod")
	must(t, os.Chown(ofAnonymous, nfstest.Anonymous, nfstest.Anonymous), os.Chown(ofPod, 1000, 1000))

	err := opened.Delete(t.Context(), "pvc-1")

	if !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "nothing of it was") {
		t.Errorf("deleting ended with %v", err)
	}
	w.mustHave(t, "a-data-1/of-anonymous/file", "a-data-1/of-a-pod/file")
	must(t, os.Chown(ofPod, nfstest.Anonymous, nfstest.Anonymous))
	must(t, opened.Delete(t.Context(), "pvc-1"))
	w.mustLack(t, "a-data-1", deleting+"/pvc-1")
}
