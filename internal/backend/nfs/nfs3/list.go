package nfs3

import (
	"context"
	"errors"
	"iter"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// How much of a directory is read by one call: names alone, and in all.
	nameBytes = 8 << 10
	pageBytes = 32 << 10

	// maxEmptyPages is how many pages without an entry may follow one another.
	maxEmptyPages = 16
)

// page is the position at which a listing continues.
type page struct {
	cookie, verifier uint64
	end              bool
	// plain is set where the server can't list types with names.
	plain bool
}

// List is READDIRPLUS or, where the server hasn't it, READDIR.
func (d *dir) List(ctx context.Context, from tree.Cursor) iter.Seq2[tree.Entry, error] {
	return func(yield func(tree.Entry, error) bool) {
		loop := loopDetector{seen: from.Cookie}
		for at := (page{cookie: from.Cookie, verifier: from.Verifier}); !at.end; {
			entries, next, err := d.readPage(ctx, at)
			if err == nil && loop.loops(next, len(entries)) {
				err = errGarbled
			}
			if err != nil {
				yield(tree.Entry{}, wrap("listing", d.path, err))
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
			at = next
		}
	}
}

func (d *dir) readPage(ctx context.Context, at page) ([]tree.Entry, page, error) {
	arguments := (&encoder{}).opaque(d.handle).uint64(at.cookie).uint64(at.verifier)
	if at.plain {
		results, err := d.query(ctx, procReadDir, arguments.uint32(pageBytes))
		return pageFrom(results, at, err)
	}
	results, err := d.query(ctx, procReadDirPlus, arguments.uint32(nameBytes, pageBytes))
	if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EPROTONOSUPPORT) {
		at.plain = true
		return nil, at, nil
	}
	return pageFrom(results, at, err)
}

// pageFrom decodes a page of a directory.
func pageFrom(results *decoder, at page, err error) ([]tree.Entry, page, error) {
	if err != nil {
		return nil, at, err
	}
	results.optionalInfo()
	next := page{cookie: at.cookie, plain: at.plain, verifier: results.uint64()}
	var entries []tree.Entry
	moved := false
	for results.bool() {
		results.uint64() // the file's number
		entry := tree.Entry{Name: string(results.opaque(tree.MaxName))}
		cookie := results.uint64()
		moved = moved || cookie != at.cookie
		next.cookie = cookie
		if !at.plain {
			entry.Type = results.entryType()
		}
		if entry.Name == "." || entry.Name == ".." {
			continue
		}
		// Cookie 0 would lead back to the beginning.
		if tree.CheckName(entry.Name) != nil || cookie == 0 {
			results.fail()
		}
		entry.Next = tree.Cursor{Cookie: cookie, Verifier: next.verifier}
		entries = append(entries, entry)
	}
	next.end = results.bool()
	if results.err == nil && !next.end && !moved {
		// The listing would never end.
		results.fail()
	}
	return entries, next, results.err
}

// entryType reads the attributes and the handle of an entry.
func (d *decoder) entryType() tree.Type {
	info, _ := d.optionalInfo()
	if d.bool() {
		d.opaque(maxHandle)
	}
	return info.Type
}

// loopDetector detects a listing that doesn't end because the server repeats cookies: by Brent's
// algorithm, which remembers one of them.
type loopDetector struct {
	seen         uint64
	steps, limit int
	empty        int
}

// loops adds a page, and reports whether the listing was there before, or makes no progress.
func (c *loopDetector) loops(after page, entries int) bool {
	c.empty++
	if entries > 0 {
		c.empty = 0
	}
	if after.end || entries == 0 {
		return c.empty > maxEmptyPages
	}
	if after.cookie == c.seen {
		return true
	}
	c.steps++
	if c.steps > c.limit {
		c.seen, c.steps, c.limit = after.cookie, 0, 2*c.limit+1
	}
	return false
}
