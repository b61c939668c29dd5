package nfs3

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	ownerOnly = 0o600
	// createGuarded makes CREATE refuse a name that is taken.
	createGuarded = 1
	// fileSync makes WRITE answer once the data is on disk.
	fileSync = 2
	// maxChunk is what every server takes and gives in one call.
	maxChunk = 8 << 10
	// maxChunks is how many calls a file may take. All files here are small, but a server may
	// transfer as little as a byte with each call.
	maxChunks = 1024
)

// WriteFile is CREATE and WRITE. A lost answer to CREATE stays unknown: the file of that name may be
// another's.
func (d *dir) WriteFile(ctx context.Context, name string, data []byte) error {
	handle, err := d.create(ctx, name)
	for chunks, offset := 0, 0; err == nil && offset < len(data); chunks++ {
		var written int
		written, err = d.write(ctx, handle, offset, data[offset:min(len(data), offset+maxChunk)])
		if offset += written; chunks == maxChunks {
			err = errGarbled
		}
	}
	return wrap("writing", d.path+"/"+name, err)
}

func (d *dir) create(ctx context.Context, name string) ([]byte, error) {
	if err := tree.CheckName(name); err != nil {
		return nil, err
	}
	results, err := d.change(ctx, procCreate, d.named(name).uint32(createGuarded).mode(ownerOnly))
	if err != nil {
		return nil, err
	}
	var handle []byte
	if present := results.bool(); present {
		handle = slices.Clone(results.opaque(maxHandle))
	} else {
		handle, _, err = d.lookup(ctx, name)
	}
	if err == nil && results.err != nil {
		err = fmt.Errorf("%w: %w", tree.ErrLost, results.err)
	}
	return handle, err
}

func (d *dir) write(ctx context.Context, handle []byte, offset int, data []byte) (int, error) {
	arguments := (&encoder{}).opaque(handle).uint64(uint64(offset)).uint32(uint32(len(data)), fileSync).opaque(data)
	results, err := d.change(ctx, procWrite, arguments)
	if err != nil {
		return 0, err
	}
	results.skipChange()
	written := int(results.uint32())
	if results.err != nil || written < 1 || written > len(data) {
		return 0, fmt.Errorf("%w: %w", tree.ErrLost, errGarbled)
	}
	return written, nil
}

// ReadFile is READ, until the end.
func (d *dir) ReadFile(ctx context.Context, name string, limit int) ([]byte, error) {
	data, err := d.readFile(ctx, name, limit)
	return data, wrap("reading", d.path+"/"+name, err)
}

func (d *dir) readFile(ctx context.Context, name string, limit int) ([]byte, error) {
	handle, info, err := d.lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	if info.Type != tree.File {
		return nil, syscall.EINVAL
	}
	var data []byte
	for chunks, end := 0, false; !end; chunks++ {
		if chunks == maxChunks {
			return nil, errGarbled
		}
		var chunk []byte
		if chunk, end, err = d.read(ctx, handle, len(data)); err != nil {
			return nil, err
		}
		if data = append(data, chunk...); len(data) > limit {
			return nil, syscall.EFBIG
		}
	}
	return data, nil
}

func (d *dir) read(ctx context.Context, handle []byte, offset int) (chunk []byte, end bool, err error) {
	results, err := d.query(ctx, procRead, (&encoder{}).opaque(handle).uint64(uint64(offset)).uint32(maxChunk))
	if err != nil {
		return nil, false, err
	}
	results.optionalInfo()
	results.uint32() // the length, again
	end = results.bool()
	chunk = results.opaque(maxChunk)
	return chunk, end || len(chunk) == 0, results.err
}

// skipChange reads past a wcc_data: attributes before and after a change.
func (d *decoder) skipChange() {
	if d.bool() {
		d.bytes(24)
	}
	d.optionalInfo()
}
