package nfs3

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	ownerOnly     = 0o600
	createGuarded = 1 // CREATE refuses a name that is taken
	// maxChunk is what every server takes and gives in one call.
	maxChunk = 8 << 10
	// maxChunks is how many calls some data may take: a server may transfer a byte with each.
	maxChunks = 1024
)

// WriteFile is CREATE and WRITE. A lost answer to CREATE stays unknown: the file of that name may be
// another's.
func (d *dir) WriteFile(ctx context.Context, name string, data []byte) error {
	handle, err := d.create(ctx, name)
	if err == nil {
		err = d.file(name, handle, maxChunk).write(ctx, data, 0, fileSync)
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
	opened := d.file(name, handle, maxChunk)
	var data []byte
	for chunks, end := 0, false; !end; chunks++ {
		if chunks == maxChunks {
			return nil, errGarbled
		}
		var chunk []byte
		if chunk, end, err = opened.read(ctx, maxChunk, len(data)); err != nil {
			return nil, err
		}
		end = end || len(chunk) == 0
		if data = append(data, chunk...); len(data) > limit {
			return nil, syscall.EFBIG
		}
	}
	return data, nil
}

// skipChange reads past a wcc_data: attributes before and after a change.
func (d *decoder) skipChange() {
	if d.bool() {
		d.bytes(24)
	}
	d.optionalInfo()
}
