package nfs3

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3/status"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Answers are what a server, or what passes for one, writes. Whatever they are, reading
// them ends, in memory that doesn't depend on the numbers in them.

func FuzzReplyHead(f *testing.F) {
	f.Add((&encoder{}).uint32(7, messageBack, accepted, authNone, 0, success).buf)
	f.Add((&encoder{}).uint32(7, messageBack, 1, 1, 5).buf)
	f.Add((&encoder{}).uint32(7, messageBack, accepted, authNone, 1<<31).buf)
	f.Add((&encoder{}).uint32(7, messageBack, accepted, authNone).opaque(make([]byte, maxVerifier)).uint32(systemError).buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := &decoder{buf: data}
		if err := openReply(reply, 7); err == nil && reply.err != nil {
			t.Errorf("a reply that makes no sense was opened: %v", reply.err)
		}
	})
}

func FuzzListing(f *testing.F) {
	whole := (&encoder{}).uint32(0).uint64(7)
	whole.uint32(1).uint64(42).opaque([]byte("name")).uint64(1).uint32(1).attributes(shareNumber).uint32(1).opaque(make([]byte, maxHandle))
	f.Add(whole.uint32(0, 1).buf, uint64(0), false)
	f.Add((&encoder{}).uint32(0).uint64(7).uint32(1).uint64(42).opaque([]byte("name")).uint64(5).uint32(0, 0).buf, uint64(5), true)
	f.Add((&encoder{}).uint32(0).uint64(7).uint32(1).uint64(42).uint32(1<<32-1).buf, uint64(0), true)
	f.Add((&encoder{}).uint32(0).uint64(7).uint32(1).uint64(42).opaque(bytes.Repeat([]byte("n"), 10*tree.MaxName)).uint64(1).uint32(0, 1).buf, uint64(0), true)
	f.Fuzz(func(t *testing.T, data []byte, cookie uint64, plain bool) {
		entries, next, err := pageFrom(&decoder{buf: data}, page{cookie: cookie, plain: plain}, nil)
		if err != nil {
			return
		}
		if !next.end && len(entries) > 0 && next.cookie == cookie && len(entries) == 1 {
			t.Error("the listing goes on where it began")
		}
		for _, entry := range entries {
			if tree.CheckName(entry.Name) != nil || len(entry.Name) > tree.MaxName || entry.Name == "." || entry.Next.Cookie == 0 {
				t.Errorf("the listing has the entry %+v", entry)
			}
		}
	})
}

func FuzzMount(f *testing.F) {
	f.Add((&encoder{}).uint32(mountOK).opaque([]byte(rootHandle)).uint32(1, authUnix).buf)
	f.Add((&encoder{}).uint32(mountOK).opaque([]byte(rootHandle)).uint32(1<<32 - 1).buf)
	f.Add((&encoder{}).uint32(13).buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		handle, err := handleFrom(&decoder{buf: data}, "/share")
		if err == nil && (len(handle) == 0 || len(handle) > maxHandle) {
			t.Errorf("a handle of %d bytes was taken", len(handle))
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, address := range []string{"::.8.1", "10.0.0.7.8.1", "::.8.256", "....", "1.-1.2", "1.0x1.2"} {
		f.Add(address)
	}
	f.Fuzz(func(_ *testing.T, address string) { portIn(address) })
}

// written is a connection on which a server has written all that it will.
type written struct {
	net.Conn
	*bytes.Reader
}

func (w written) Read(data []byte) (int, error) { return w.Reader.Read(data) }
func (written) Write(data []byte) (int, error)  { return len(data), nil }
func (written) SetDeadline(time.Time) error     { return nil }
func (written) Close() error                    { return nil }

func FuzzFragments(f *testing.F) {
	f.Add((&encoder{}).uint32(lastFragment | 4).uint32(7).buf)
	f.Add((&encoder{}).uint32(4).uint32(7).uint32(lastFragment).buf)
	f.Add((&encoder{}).uint32(0).uint32(0).uint32(lastFragment).buf)
	f.Add((&encoder{}).uint32(maxReply).uint32(maxReply).buf)
	f.Add((&encoder{}).uint32(lastFragment | (maxReply + 1)).buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		record, err := (&conn{Conn: written{Reader: bytes.NewReader(data)}}).receive()
		if err == nil && (len(record) > maxReply || len(record) > len(data)) {
			t.Errorf("a record of %d bytes was made of %d", len(record), len(data))
		}
	})
}

// FuzzAnswers has each operation meet a server that answers its calls with these bytes, one
// piece for each.
func FuzzAnswers(f *testing.F) {
	found := (&encoder{}).uint32(0).opaque([]byte(volumeHandle)).uint32(1).attributes(shareNumber).buf
	read := (&encoder{}).uint32(0, 0, 4, 1).opaque([]byte("data")).buf
	for operation := range uint8(operations) {
		f.Add(operation, []byte{}, []byte{})
		f.Add(operation, found, read)
		f.Add(operation, found, (&encoder{}).uint32(0, 0, 1<<32-1, 0).uint32(1<<32-1).buf)
		f.Add(operation, (&encoder{}).uint32(0).uint32(1).attributes(shareNumber).buf, found)
		f.Add(operation, (&encoder{}).uint32(70).buf, (&encoder{}).uint32(status.BadCookie).buf)
	}
	f.Fuzz(func(t *testing.T, operation uint8, first, further []byte) {
		const most = 10_000
		calls := 0
		answered := answeredBy(func(uint32, []byte) []byte {
			calls++
			if calls > most {
				t.Fatal("there is no end of calls")
			}
			if calls == 1 {
				return first
			}
			return further
		})
		if err := operate(t.Context(), answered, int(operation)); err != nil && len(err.Error()) > 10_000 {
			t.Errorf("the message has %d bytes", len(err.Error()))
		}
	})
}

const operations = 13

// operate does one of the operations.
func operate(ctx context.Context, on *dir, operation int) error {
	const limit = 64 << 10
	var err error
	switch operation % operations {
	case 0:
		_, err = on.Stat(ctx)
	case 1:
		_, err = on.Lookup(ctx, "name")
	case 2:
		_, err = on.Open(ctx, "name")
	case 3:
		for _, listing := range on.List(ctx, tree.Cursor{}) {
			err = errors.Join(listing)
		}
	case 4:
		_, err = on.ReadFile(ctx, "name", limit)
	case 5:
		_, err = on.ReadLink(ctx, "name")
	case 6:
		_, err = on.Writable(ctx)
	case 7:
		_, err = on.Space(ctx)
	case 8:
		err = on.MakeDir(ctx, "name", 0o700)
	case 9:
		err = on.MakeLink(ctx, "name", "text")
	case 10:
		err = on.WriteFile(ctx, "name", []byte("data"))
	case 11:
		err = on.SetAccess(ctx, tree.Access{UID: 1})
	default:
		err = errors.Join(on.Rename(ctx, "name", on, "other"), on.RemoveDir(ctx, "name"))
	}
	return err
}
