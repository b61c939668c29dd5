package nfs3

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

func TestNoReplyIsTooStrangeToBeRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		reply := make([]byte, random.IntN(200))
		for i := range reply {
			// Small numbers are what lengths, counts and flags are.
			reply[i] = byte(random.IntN(3) * random.IntN(2) * random.IntN(128))
		}
		_, _ = handleFrom(&decoder{buf: slices.Clone(reply)}, "/share")
		_ = openReply(&decoder{buf: slices.Clone(reply)}, 0)
		entries, _, err := pageFrom(&decoder{buf: slices.Clone(reply)}, page{}, nil)
		for _, entry := range entries {
			if err == nil && tree.CheckName(entry.Name) != nil {
				t.Fatalf("a listing has the name %q", entry.Name)
			}
		}
	}
}

func TestAPortIsReadFromAnAddress(t *testing.T) {
	for universal, want := range map[string]uint16{
		"::.8.1": 2049, "fe80::1.78.80": 20048, "10.0.0.7.8.1": 2049, "": 0, "::": 0, "::.8": 0, "::.8.256": 0, "::.-1.1": 0, "::.x.1": 0,
	} {
		if got := portIn(universal); got != want {
			t.Errorf("%q: %d", universal, got)
		}
	}
}

func TestAListingThatLeadsElsewhereIsRefused(t *testing.T) {
	for _, name := range []string{"../canary", "a/b", "", "a\x00b"} {
		listing := (&encoder{}).uint32(0).uint64(7)
		listing.uint32(1).uint64(42).opaque([]byte(name)).uint64(1).uint32(0, 0) // an entry, no attributes, no handle
		listing.uint32(0, 1)
		if entries, _, err := pageFrom(&decoder{buf: listing.buf}, page{}, nil); !errors.Is(err, errGarbled) {
			t.Errorf("the name %q was read: %v", name, entries)
		}
	}
}

func TestAListingThatGoesRoundInCirclesEnds(t *testing.T) {
	listing := (&encoder{}).uint32(0).uint64(7)
	listing.uint32(1).uint64(42).opaque([]byte("a")).uint64(5).uint32(0, 0)
	listing.uint32(0, 0)
	if _, _, err := pageFrom(&decoder{buf: listing.buf}, page{cookie: 5}, nil); !errors.Is(err, errGarbled) {
		t.Errorf("a page that goes on where it began: %v", err)
	}
}

// The scripted share has a directory "volume" with a mount "disk" in it.
const (
	volumeHandle, diskHandle, rootHandle = "volume..", "disk....", "root...."
	shareNumber, diskNumber              = 1, 2
)

func TestRemovingStopsAtAnotherFileSystem(t *testing.T) {
	changes := make(chan uint32, 16)
	client := NewClient("127.0.0.1", scripted(t, changes))
	defer client.Close()
	root, err := client.Open(t.Context(), "/share")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	err = tree.RemoveTree(t.Context(), root, "volume", time.Now().Add(time.Hour))

	if !errors.Is(err, tree.ErrOtherFileSystem) {
		t.Errorf("removing ended with %v", err)
	}
	if len(changes) > 0 {
		t.Errorf("procedure %d was called", <-changes)
	}
}

// scripted serves that share, and reports which procedures that change something
// were called.
func scripted(t *testing.T, changes chan<- uint32) Options {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(&conn{Conn: accepted, timeout: time.Minute}, changes)
		}
	}()
	_, text, _ := net.SplitHostPort(listener.Addr().String())
	port, _ := strconv.Atoi(text)
	return Options{Port: port, MountPort: port, CallTimeout: 10 * time.Second}
}

func answer(client *conn, changes chan<- uint32) {
	defer client.Close()
	for {
		call, err := client.receive()
		if err != nil {
			return
		}
		program, proc := binary.BigEndian.Uint32(call[12:]), binary.BigEndian.Uint32(call[20:])
		reply := (&encoder{}).uint32(binary.BigEndian.Uint32(call), messageBack, accepted, authNone, 0, success)
		body := answerTo(program, proc, call)
		if body == nil {
			changes <- proc
			return
		}
		reply.buf = append(reply.buf, body.buf...)
		if client.send(reply.buf) != nil {
			return
		}
	}
}

func answerTo(program, proc uint32, call []byte) *encoder {
	body := (&encoder{}).uint32(0) // done
	switch {
	case program == mountDir.program:
		return body.opaque([]byte(rootHandle)).uint32(1, authUnix)
	case proc == procGetAttr:
		return body.attributes(shareNumber)
	case proc == procLookup && slices.Contains([]string{"volume", "disk"}, lastName(call)):
		handle, number := volumeHandle, uint64(shareNumber)
		if lastName(call) == "disk" {
			handle, number = diskHandle, diskNumber
		}
		return body.opaque([]byte(handle)).uint32(1).attributes(number).uint32(0)
	case proc == procLookup && lastName(call) == "stale":
		return (&encoder{}).uint32(70, 0)
	case proc == procReadDirPlus:
		body.uint32(0).uint64(7)
		body.uint32(1).uint64(42).opaque([]byte("disk")).uint64(1).uint32(1).attributes(diskNumber).uint32(0)
		return body.uint32(0, 1)
	default:
		return nil
	}
}

// lastName is the name that a LOOKUP ends with.
func lastName(call []byte) string {
	for _, name := range []string{"volume", "disk", "stale"} {
		padded := (&encoder{}).opaque([]byte(name)).buf
		if len(call) > len(padded) && bytes.Equal(call[len(call)-len(padded):], padded) {
			return name
		}
	}
	return ""
}

func (e *encoder) attributes(fileSystem uint64) *encoder {
	e.uint32(typeDirectory, 0o755, 2, 0, 0)
	e.uint64(0).uint64(0).uint64(0).uint64(fileSystem).uint64(1)
	return e.uint32(0, 0, 0, 0, 0, 0)
}

func TestAStaleHandleIsRequestedAgain(t *testing.T) {
	client := NewClient("127.0.0.1", scripted(t, make(chan uint32, 16)))
	defer client.Close()
	root, err := client.Open(t.Context(), "/share")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, remembered := client.handle("/share"); !remembered {
		t.Error("the share's handle isn't kept")
	}
	if _, err := root.Lookup(t.Context(), "stale"); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("looking it up: %v", err)
	}
	if _, remembered := client.handle("/share"); remembered {
		t.Error("the share's handle is kept, and may be what is stale")
	}
}

// lateConn is a connection with a deadline that moves up late, as the scheduler may
// have it: after the reply came.
type lateConn struct {
	net.Conn
	moving, replied chan struct{}
}

func (l lateConn) SetDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		close(l.moving)
		<-l.replied
	}
	return l.Conn.SetDeadline(at)
}

func TestACancelledCallDisturbsNoOther(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	late := lateConn{here, make(chan struct{}), make(chan struct{})}
	called := &conn{Conn: late, timeout: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		server := &conn{Conn: there}
		_, _ = server.receive()
		cancel()
		<-late.moving
		_ = server.send([]byte("reply"))
	}()

	reply, err := called.exchange(ctx, []byte("call"))

	if string(reply) != "reply" || err != nil {
		t.Errorf("the reply is %q, %v", reply, err)
	}
	if !called.broken {
		t.Error("the next call on this connection would be cut off")
	}
	close(late.replied)
}

func TestNoNameLeadsOutOfADirectory(t *testing.T) {
	client := NewClient("127.0.0.1", scripted(t, make(chan uint32, 16)))
	defer client.Close()
	root, err := client.Open(context.Background(), "/share")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"", ".", "..", "a/b", "../canary", "a\x00"} {
		_, lookup := root.Lookup(t.Context(), name)
		for doing, err := range map[string]error{
			"looked up": lookup, "made": root.MakeDir(t.Context(), name, 0), "linked": root.MakeLink(t.Context(), name, ""),
			"written": root.WriteFile(t.Context(), name, nil), "removed": root.RemoveDir(t.Context(), name),
			"renamed": root.Rename(t.Context(), name, root, "a"), "renamed to": root.Rename(t.Context(), "a", root, name),
		} {
			if err == nil || errors.Is(err, tree.ErrLost) {
				t.Errorf("%q could be %s: %v", name, doing, err)
			}
		}
	}
}
