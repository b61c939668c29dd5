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

	maxName = 4096
)

// page is where a listing goes on.
type page struct {
	cookie, verifier uint64
	end              bool
	// plain is set where the server can't tell types with names.
	plain bool
}

// List is READDIRPLUS or, where the server hasn't it, READDIR.
func (d *dir) List(ctx context.Context) iter.Seq2[tree.Entry, error] {
	return func(yield func(tree.Entry, error) bool) {
		for at := (page{}); !at.end; {
			entries, next, err := d.readPage(ctx, at)
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
		results, err := d.ask(ctx, procReadDir, arguments.uint32(pageBytes))
		return pageFrom(results, at, err)
	}
	results, err := d.ask(ctx, procReadDirPlus, arguments.uint32(nameBytes, pageBytes))
	if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EPROTONOSUPPORT) {
		return nil, page{plain: true}, nil
	}
	return pageFrom(results, at, err)
}

// pageFrom reads what the server told of a directory.
func pageFrom(results *decoder, at page, err error) ([]tree.Entry, page, error) {
	if err != nil {
		return nil, at, err
	}
	results.infoIfAny()
	next := page{cookie: at.cookie, plain: at.plain, verifier: results.uint64()}
	var entries []tree.Entry
	moved := false
	for results.bool() {
		results.uint64() // the file's number
		entry := tree.Entry{Name: string(results.opaque(maxName))}
		cookie := results.uint64()
		moved = moved || cookie != at.cookie
		next.cookie = cookie
		if !at.plain {
			entry.Type = results.typeIfAny()
		}
		if entry.Name == "." || entry.Name == ".." {
			continue
		}
		if tree.CheckName(entry.Name) != nil {
			results.fail()
		}
		entries = append(entries, entry)
	}
	next.end = results.bool()
	if results.err == nil && !next.end && !moved {
		// It would go round in circles.
		results.fail()
	}
	return entries, next, results.err
}

// typeIfAny reads the attributes and the handle of an entry.
func (d *decoder) typeIfAny() tree.Type {
	info, _ := d.infoIfAny()
	if d.bool() {
		d.opaque(maxHandle)
	}
	return info.Type
}
