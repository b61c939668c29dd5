package snapshots

import (
	"context"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// remove is the job that removes a copy. Disks made from it stay.
type remove[T any] struct {
	engine.Quick
	kind *kind[T]
	Path string
	ID   uint64 `json:",string"`
}

func (k *kind[T]) newRemove(r *wire.Request) (engine.Job, error) {
	return &remove[T]{kind: k, Path: r.Named(k.name+"s", k.name)}, nil
}

func (j *remove[T]) Locks() []string { return []string{j.Path} }

func (j *remove[T]) Accept(s *engine.Engine) (engine.Target, error) {
	row, found := j.kind.table(s).Get(j.Path)
	of := j.kind.fields(&row)
	switch {
	case !found:
		return engine.Target{}, wire.NotFound(j.Path)
	case *of.status != state.StatusReady:
		return engine.Target{}, wire.NotReady(j.Path)
	}
	j.ID = *of.id
	return engine.Target{Path: j.Path, ID: j.ID}, nil
}

// Begin finds the copy that was there when the job was accepted: another may have its name.
func (j *remove[T]) Begin(s *engine.Engine, _ string) error {
	if row, found := j.kind.table(s).Get(j.Path); !found || *j.kind.fields(&row).id != j.ID {
		return wire.NotFound(j.Path)
	}
	return nil
}

func (j *remove[T]) Work(_ context.Context, s *engine.Engine) error { return s.Contents.Remove(j.ID) }

func (j *remove[T]) Finish(s *engine.Engine) { j.kind.table(s).Remove(j.Path) }
