package nfs3_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// callTimeout is far more than a call takes here, also on a busy machine.
	callTimeout = 15 * time.Second
	// silence is how long is waited for a server that will not answer.
	silence = 2 * time.Second
	// patience is how long a call may take that has to end by itself.
	patience = time.Minute

	procGetAttr, procLookup, procMkdir, procRename = 1, 3, 9, 14
)

// world is a server, a proxy that can make faults, and a client.
type world struct {
	folder string
	server *nfstest.Server
	proxy  *nfstest.Proxy
	client *nfs3.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, callTimeout)
}

// newWorldOf is a world with a client that waits so long for an answer.
func newWorldOf(t *testing.T, timeout time.Duration) *world {
	t.Helper()
	w := &world{folder: t.TempDir()}
	var err error
	if w.server, err = nfstest.Serve(w.folder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.server.Close)
	if w.proxy, err = nfstest.NewProxy(w.server.Port()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.proxy.Close)
	w.client = nfs3.NewClient(nfstest.Host, nfs3.Options{Port: w.proxy.Port(), MountPort: w.proxy.Port(), CallTimeout: timeout})
	t.Cleanup(func() {
		w.client.Close()
		expectNoGoroutines(t)
	})
	return w
}

func (w *world) open(t *testing.T) tree.Dir {
	t.Helper()
	root, err := w.client.Open(t.Context(), nfstest.Share)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// on makes a fault in the first call of a procedure.
func on(procedure uint32, fault nfstest.Fault) func(nfstest.Call) nfstest.Fault {
	done := false
	return func(call nfstest.Call) nfstest.Fault {
		if done || call.Procedure != procedure {
			return nfstest.None
		}
		done = true
		return fault
	}
}

// expectNoGoroutines fails if the client left any behind.
func expectNoGoroutines(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left := 0
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "/nfs3.") && !strings.Contains(stack, "testing.tRunner") {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d goroutines were left behind:\n%s", left, stacks)
			return
		}
		runtime.Gosched()
	}
}

var noProperAnswer = map[string]nfstest.Fault{
	"closes before it takes the call":    nfstest.DropCall,
	"closes in place of answering":       nfstest.LoseReply,
	"closes in the middle of its answer": nfstest.HalfReply,
	"answers too briefly":                nfstest.ShortReply,
	"answers with what is no reply":      nfstest.Garbage,
	"answers without end":                nfstest.HugeReply,
	"answers another call":               nfstest.WrongNumber,
	"carries the call out and is silent": nfstest.Silence,
	"is silent from the start":           nfstest.DeadSilence,
}

// timeoutOf is how long a client waits for the answer to a call with a fault.
func timeoutOf(fault nfstest.Fault) time.Duration {
	if fault == nfstest.Silence || fault == nfstest.DeadSilence {
		return silence
	}
	return callTimeout
}

func TestAServerThatMisbehavesBlocksNoReader(t *testing.T) {
	for name, fault := range noProperAnswer {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, timeoutOf(fault))
			root := w.open(t)
			w.proxy.Plan(func(nfstest.Call) nfstest.Fault { return fault })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			_, err := root.Stat(ctx)

			if err == nil || ctx.Err() != nil {
				t.Fatalf("the call ended with %v, and after it was %v", err, ctx.Err())
			}
			if errors.Is(err, tree.ErrLost) {
				t.Errorf("a call that changes nothing can't have an outcome to wonder about: %v", err)
			}
			w.proxy.Plan(nil)
			if _, err := root.Stat(t.Context()); err != nil {
				t.Errorf("the next call, to a server that is well again: %v", err)
			}
		})
	}
}

func TestAServerThatMisbehavesFromTheStartIsNotOpened(t *testing.T) {
	for name, fault := range noProperAnswer {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, timeoutOf(fault))
			w.proxy.Plan(func(nfstest.Call) nfstest.Fault { return fault })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := w.client.Open(ctx, nfstest.Share); err == nil || ctx.Err() != nil {
				t.Errorf("opening ended with %v, and after it was %v", err, ctx.Err())
			}
		})
	}
}

func TestAfterAFaultTheOutcomeIsRead(t *testing.T) {
	carriedOut := map[nfstest.Fault]bool{nfstest.DropCall: false, nfstest.DeadSilence: false}
	for name, fault := range noProperAnswer {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, timeoutOf(fault))
			root := w.open(t)
			w.proxy.Plan(on(procMkdir, fault))

			err := root.MakeDir(t.Context(), "volume", 0o700)

			_, stat := os.Stat(filepath.Join(w.folder, "volume"))
			_, known := carriedOut[fault]
			switch {
			case !known && (err != nil || stat != nil):
				t.Errorf("the directory was made, and the answer is %v, %v", err, stat)
			case known && (!errors.Is(err, tree.ErrLost) || stat == nil):
				t.Errorf("the directory wasn't made, and may still be: the answer is %v, %v", err, stat)
			}
		})
	}
}

func TestTheOutcomeOfALostAnswerIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		procedure uint32
		prepare   func(t *testing.T, folder string)
		change    func(ctx context.Context, root tree.Dir) error
	}{
		"to making a link": {10, nothing, func(ctx context.Context, root tree.Dir) error {
			return root.MakeLink(ctx, "mark", "cluster/volume")
		}},
		"to removing a file": {12, file, func(ctx context.Context, root tree.Dir) error { return root.RemoveFile(ctx, "a") }},
		"to removing a directory": {13, directory, func(ctx context.Context, root tree.Dir) error {
			return root.RemoveDir(ctx, "a")
		}},
		"to renaming": {procRename, directory, func(ctx context.Context, root tree.Dir) error {
			return root.Rename(ctx, "a", root, "b")
		}},
		"to setting owner and mode": {2, nothing, func(ctx context.Context, root tree.Dir) error {
			return root.SetAccess(ctx, tree.Access{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Mode: 0o751})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.prepare(t, w.folder)
			root := w.open(t)
			w.proxy.Plan(on(test.procedure, nfstest.LoseReply))
			if err := test.change(t.Context(), root); err != nil {
				t.Errorf("it was carried out, and the answer is: %v", err)
			}
		})
		t.Run(name+", never carried out", func(t *testing.T) {
			w := newWorld(t)
			test.prepare(t, w.folder)
			root := w.open(t)
			w.proxy.Plan(on(test.procedure, nfstest.DropCall))
			if err := test.change(t.Context(), root); !errors.Is(err, tree.ErrLost) {
				t.Errorf("it may still be carried out, and the answer is: %v", err)
			}
		})
	}
}

func TestAChangeIsSentOnce(t *testing.T) {
	w := newWorld(t)
	root := w.open(t)
	changes := 0
	w.proxy.Plan(func(call nfstest.Call) nfstest.Fault {
		if call.Procedure == procMkdir {
			changes++
			return nfstest.DropCall
		}
		return nfstest.None
	})
	_ = root.MakeDir(t.Context(), "volume", 0o700)
	if changes != 1 {
		t.Errorf("the call was sent %d times", changes)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	for name, limit := range map[string]time.Duration{"by its deadline": time.Second, "by being cancelled": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, time.Hour)
			root := w.open(t)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			w.proxy.Plan(func(nfstest.Call) nfstest.Fault {
				if limit == time.Hour {
					cancel() // the call is under way now
				}
				return nfstest.DeadSilence
			})
			ended := make(chan error, 1)
			go func() {
				_, err := root.Stat(ctx)
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, nfs3.ErrNoAnswer) {
					t.Errorf("the call ended with %v", err)
				}
			case <-time.After(patience):
				t.Error("the call goes on")
			}
		})
	}
}

func TestACallIsNotMadeAfterItsContext(t *testing.T) {
	w := newWorld(t)
	root := w.open(t)
	w.proxy.Plan(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := root.MakeDir(ctx, "volume", 0o700); !errors.Is(err, context.Canceled) || errors.Is(err, tree.ErrLost) {
		t.Errorf("it ended with %v", err)
	}
	if calls := w.proxy.Calls(); calls > 0 {
		t.Errorf("%d calls were made", calls)
	}
}

func TestAReplyInPiecesIsRead(t *testing.T) {
	w := newWorld(t)
	root := w.open(t)
	w.proxy.Plan(func(nfstest.Call) nfstest.Fault { return nfstest.Fragments })
	if info, err := root.Stat(t.Context()); err != nil || info.Type != tree.Directory {
		t.Errorf("the root is %+v, %v", info, err)
	}
}

func TestAConnectionThatTheServerClosedIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	root := w.open(t)
	root.Close()
	w.proxy.Hangup()
	again, err := w.client.Open(t.Context(), nfstest.Share)
	if err != nil {
		t.Fatalf("opening the share again: %v", err)
	}
	again.Close()
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	w := newWorld(t)
	w.open(t).Close()
	w.proxy.Plan(nil)
	w.open(t).Close()
	if calls := w.proxy.Calls(); calls != 1 {
		t.Errorf("opening a known share over a connection that waits took %d calls", calls)
	}
}

func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	w := newWorld(t)
	if _, err := w.client.Open(t.Context(), "/exports/nowhere"); !errors.Is(err, nfs3.ErrNoExport) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a share that isn't exported: %v", err)
	}
	w.server.Close()
	w.proxy.Close()
	if _, err := w.client.Open(t.Context(), nfstest.Share); !errors.Is(err, nfs3.ErrUnreachable) {
		t.Errorf("a server that is stopped: %v", err)
	}
}

// apartVariable is set in the process that runs apart.
const apartVariable = "STOWAGE_TEST_APART"

// The test runs itself again with a network of its own: on the machine's, other tests may have all of
// the low ports.
func TestAServerThatRequiresALowPortGetsOneWherePossible(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: ports below 1024 are root's")
	}
	if os.Getenv(apartVariable) == "" {
		again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), apartVariable+"=yes")
		nfstest.Apart(again)
		if output, err := again.CombinedOutput(); err != nil {
			t.Fatalf("apart, the test ended with %v:\n%s", err, output)
		}
		return
	}
	if err := nfstest.LoopbackUp(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	server, err := nfstest.Serve(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Secure.Store(true)
	open := func() error {
		client := nfs3.NewClient(nfstest.Host, nfs3.Options{Port: server.Port(), MountPort: server.Port(), CallTimeout: callTimeout})
		defer client.Close()
		root, err := client.Open(context.Background(), nfstest.Share)
		if err == nil {
			root.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Errorf("with the right to a low port: %v", err)
	}
	if err := withoutLowPorts(open); !errors.Is(err, nfs3.ErrNoExport) || !errors.Is(err, syscall.EACCES) {
		t.Errorf("without the right to a low port: %v", err)
	}
	server.Secure.Store(false)
	if err := withoutLowPorts(open); err != nil {
		t.Errorf("without the right to a low port, where any will do: %v", err)
	}
}

// withoutLowPorts calls a function on a thread that has not the capability, and
// which ends with it.
func withoutLowPorts(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{}
		if err := unix.Capget(&header, &data[0]); err != nil {
			done <- err
			return
		}
		data[0].Effective &^= 1 << unix.CAP_NET_BIND_SERVICE
		if err := unix.Capset(&header, &data[0]); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}

func nothing(*testing.T, string) {}

func file(t *testing.T, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func directory(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
}
