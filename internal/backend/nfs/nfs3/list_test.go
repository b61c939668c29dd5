package nfs3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3/status"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// listing answers with pages of one entry each: next says which cookie follows one.
func listing(next func(cookie uint64) (after uint64, name string)) *dir {
	return answeredBy(func(_ uint32, call []byte) []byte {
		// A cookie, a verifier and two sizes end the call.
		cookie := binary.BigEndian.Uint64(call[len(call)-24:])
		after, name := next(cookie)
		page := (&encoder{}).uint32(0, 0).uint64(7)
		page.uint32(1).uint64(42).opaque([]byte(name)).uint64(after).uint32(0, 0)
		return page.uint32(0, 0).buf
	})
}

// mustEnd lists a directory, and fails if there is no end to it.
func mustEnd(t *testing.T, of *dir, most int) error {
	t.Helper()
	seen := 0
	for _, err := range of.List(t.Context(), tree.Cursor{}) {
		if err != nil {
			return err
		}
		seen++
		if seen > most {
			t.Fatalf("it goes on after %d entries", seen)
		}
	}
	return nil
}

func TestAListingThatComesByACookieAgainEnds(t *testing.T) {
	for _, length := range []uint64{1, 2, 3, 10, 1000} {
		for _, before := range []uint64{0, 1, 100} {
			round := listing(func(cookie uint64) (uint64, string) {
				if cookie == before+length {
					cookie = before
				}
				return cookie + 1, fmt.Sprint("name-", cookie)
			})
			if err := mustEnd(t, round, int(10*(before+length+1))); !errors.Is(err, errGarbled) {
				t.Errorf("a circle of %d pages after %d ended with %v", length, before, err)
			}
		}
	}
}

func TestAListingOfPagesWithoutAnEntryEnds(t *testing.T) {
	calls := 0
	hollow := listing(func(cookie uint64) (uint64, string) {
		calls++
		if calls > 10*maxEmptyPages {
			t.Fatal("it doesn't end")
		}
		return cookie + 1, "."
	})
	if err := mustEnd(t, hollow, 0); !errors.Is(err, errGarbled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAnEntryThatLeadsBackToTheBeginningIsRefused(t *testing.T) {
	calls := uint64(0)
	back := listing(func(uint64) (uint64, string) {
		calls++
		return (calls % 2) * 5, "name"
	})
	if err := mustEnd(t, back, 1); !errors.Is(err, errGarbled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAListingWhoseCursorIsOutdatedSaysSo(t *testing.T) {
	outdated := answeredBy(func(uint32, []byte) []byte { return (&encoder{}).uint32(status.BadCookie, 0).buf })
	for _, err := range outdated.List(t.Context(), tree.Cursor{Cookie: 5, Verifier: 7}) {
		if !errors.Is(err, tree.ErrCursor) {
			t.Errorf("it ended with %v", err)
		}
	}
}

func TestAFileThatIsReadAndWrittenByteByByteEnds(t *testing.T) {
	for doing, operate := range map[string]func(on *dir) error{
		"reading": func(on *dir) error { _, err := on.ReadFile(t.Context(), "name", 1<<20); return err },
		"writing": func(on *dir) error { return on.WriteFile(t.Context(), "name", make([]byte, 1<<20)) },
	} {
		calls := 0
		slow := answeredBy(func(procedure uint32, _ []byte) []byte {
			calls++
			if calls > 10*maxChunks {
				t.Fatalf("there is no end of %s", doing)
			}
			switch procedure {
			case procLookup:
				file := (&encoder{}).attributes(shareNumber)
				file.buf[3] = typeRegular
				found := (&encoder{}).uint32(0).opaque([]byte(volumeHandle)).uint32(1)
				found.buf = append(found.buf, file.buf...)
				return found.buf
			case procCreate:
				return (&encoder{}).uint32(0, 1).opaque([]byte(volumeHandle)).buf
			case procWrite:
				return (&encoder{}).uint32(0, 0, 0, 1).buf
			default:
				return (&encoder{}).uint32(0, 0, 1, 0).opaque([]byte("x")).buf
			}
		})
		if err := operate(slow); !errors.Is(err, errGarbled) {
			t.Errorf("%s ended after %d calls with %v", doing, calls, err)
		}
	}
}
