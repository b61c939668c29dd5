package hotplug_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

//go:embed testdata/guest.sh
var guestScript string

// guest is a machine with a kernel of its own, which runs commands of the test.
type guest struct {
	*testing.T
	*uml.Guest
	hotplug.Guests
	shared    string
	requested int
}

func boot(t *testing.T) *guest {
	t.Helper()
	needs(t, "linux.uml", "gcc")
	dir := t.TempDir()
	script := filepath.Join(dir, "init.sh")
	if err := os.WriteFile(script, []byte(guestScript), 0o700); err != nil {
		t.Fatal(err)
	}
	g := &guest{T: t, shared: t.TempDir()}
	g.Guests = hotplug.Guests{Sockets: dir, Folder: hotplug.Folder(g.shared)}
	console, err := os.Create(filepath.Join(dir, "console"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { console.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	g.Guest, err = uml.Boot(ctx, uml.Options{
		Name: "node", Dir: dir, Memory: "96M", Tap: "none", Init: []string{script, g.shared}, Console: console,
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-g.Gone()
	})
	g.say("true")
	return g
}

// say has the guest's shell run a command, and returns what it printed.
func (g *guest) say(command string) string {
	g.Helper()
	g.requested++
	ask, answer := filepath.Join(g.shared, fmt.Sprintf("ask-%d", g.requested)), filepath.Join(g.shared, fmt.Sprintf("answer-%d", g.requested))
	if err := os.WriteFile(ask+".new", []byte(command), 0o600); err != nil {
		g.Fatal(err)
	}
	if err := os.Rename(ask+".new", ask); err != nil {
		g.Fatal(err)
	}
	deadline := time.After(2 * time.Minute) // a guest boots in seconds, and on a busy machine in many
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(answer)
		if err == nil {
			return strings.TrimSpace(string(text))
		}
		select {
		case <-tick.C:
		case <-deadline:
			console, _ := os.ReadFile(filepath.Join(g.Sockets, "console"))
			g.Fatalf("the guest doesn't answer; its console says: %s", console)
		}
	}
}

func TestADiskAppearsInAGuestAndVanishes(t *testing.T) {
	g := boot(t)
	data, more := newDevice(t, "node", "data"), newDevice(t, "node", "more")
	attach(t, g.Guests, more)
	for range 2 { // a repeat finds it
		attach(t, g.Guests, data)
	}
	link := linkOf(g.shared, data)
	if text := g.say("head -c 9 " + link); text != "I am data" {
		t.Errorf("the guest reads %q", text)
	}
	if serial := serialOf(t, link); serial != "data" {
		t.Errorf("its serial is %q", serial)
	}
	for range 2 {
		if err := g.Detach(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	if left := g.say("ls /sys/block"); strings.Contains(left, "ubdc") || !strings.Contains(left, "ubdb") || isThere(link) {
		t.Errorf("the guest has %q left", left)
	}
}

func TestADiskThatAGuestUsesStays(t *testing.T) {
	g := boot(t)
	data := newDevice(t, "node", "data")
	attach(t, g.Guests, data)
	// The shell opens it: the program could still be about to when the shell has answered.
	g.say("exec 3< " + linkOf(g.shared, data) + "; sleep 1000 > /dev/null 2>&1 & echo $! > /run/pid")
	if err := g.Detach(t.Context(), data); !errors.Is(err, hotplug.ErrInUse) {
		t.Errorf("got %v", err)
	}
	if text := g.say("head -c 9 " + linkOf(g.shared, data)); text != "I am data" {
		t.Errorf("the guest reads %q", text)
	}
	g.say("pid=$(cat /run/pid); kill $pid; while [ -e /proc/$pid/fd/3 ]; do sleep 0.05; done")
	if err := g.Detach(t.Context(), data); err != nil {
		t.Error(err)
	}
}

func TestADiskToReadCannotBeWrittenInAGuest(t *testing.T) {
	g := boot(t)
	data := newDevice(t, "node", "data")
	data.ReadOnly = true
	attach(t, g.Guests, data)
	g.say("printf changed | dd of=" + linkOf(g.shared, data) + " conv=fsync 2>/dev/null")
	if text := beginning(t, data.Image); text != "I am data" {
		t.Errorf("the disk holds %q", text)
	}
}

func TestADeadGuestHasNoDisksAndGetsNone(t *testing.T) {
	g := boot(t)
	data := newDevice(t, "node", "data")
	attach(t, g.Guests, data)
	g.Crash()
	if err := g.Detach(t.Context(), data); err != nil || isThere(linkOf(g.shared, data)) {
		t.Errorf("it is still there: %v", err)
	}
	if err := g.Attach(t.Context(), data); !errors.Is(err, hotplug.ErrNoGuest) {
		t.Errorf("got %v", err)
	}
}

func TestAGuestThatDiesWhileItIsAskedIsGone(t *testing.T) {
	folder, err := os.MkdirTemp("", "console-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	guests := hotplug.Guests{Sockets: folder, Folder: hotplug.Folder(t.TempDir())}
	data := newDevice(t, "node", "data")
	if err := os.Mkdir(filepath.Join(folder, data.Instance), 0o700); err != nil {
		t.Fatal(err)
	}
	address := &net.UnixAddr{Name: filepath.Join(folder, data.Instance, "mconsole"), Net: "unixgram"}
	console, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, address)
	detached := make(chan error)
	go func() { detached <- guests.Detach(t.Context(), data) }()
	// The kernel holds the question until there is room for it, or nothing to give it to.
	select {
	case err := <-detached:
		t.Fatalf("before its end it says %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	console.Close()
	if err := <-detached; err != nil {
		t.Errorf("it is still there: %v", err)
	}
}

// fill sends to a socket until it has no room left.
func fill(t *testing.T, address *net.UnixAddr) {
	t.Helper()
	filler, err := net.DialUnix("unixgram", nil, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { filler.Close() })
	if err := filler.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write([]byte("x"))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
