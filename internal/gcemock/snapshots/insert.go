// Package snapshots serves what is copied from disks: snapshots, instant snapshots and
// images. It lists and reads them, and has the jobs that insert and delete them. One
// implementation serves all three; kind has their differences.
//
// It never makes a disk from a copy: package disks does.
package snapshots

import (
	"context"
	"encoding/json"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// insert is the job that keeps the bytes of a disk, or of a copy of one.
type insert[T any] struct {
	kind  *kind[T]
	row   T
	from  disks.Source
	force bool
}

func (k *kind[T]) newInsert(r *wire.Request) (engine.Job, error) {
	j := &insert[T]{kind: k, force: r.URL.Query().Get("forceCreate") == "true"}
	if err := r.IntoServed(&j.row, k.served...); err != nil {
		return nil, err
	}
	of := k.fields(&j.row)
	for _, source := range of.sources {
		*source = wire.Reference(*source, r.Project)
	}
	k.complete(r, &j.row)
	scope := wire.ProjectPath(r.Project) + "/global"
	if k.isZonal {
		scope = r.Scope()
	}
	*of.path, *of.id, *of.status = scope+"/"+k.name+"s/"+*of.name, wire.NewID(), k.created
	*of.fingerprint = wire.FingerprintOf(*of.labels)
	return j, nil
}

func (j *insert[T]) fields() fields { return j.kind.fields(&j.row) }

func (j *insert[T]) Locks() []string { return []string{*j.fields().path, j.from.Path} }

func (j *insert[T]) Accept(s *engine.Engine) (engine.Target, error) {
	of := j.fields()
	path := *of.path
	if err := wire.CheckName(*of.name); err != nil {
		return engine.Target{}, err
	}
	if err := wire.CheckLabels(*of.labels); err != nil {
		return engine.Target{}, err
	}
	if _, found := j.kind.table(s).Get(path); found {
		return engine.Target{}, wire.Exists(path)
	}
	var err error
	if j.from, err = j.kind.findSource(s, &j.row, j.force); err != nil {
		return engine.Target{}, err
	}
	*of.created = s.Timestamp()
	j.kind.table(s).Put(path, j.row)
	return engine.Target{Path: path, ID: *of.id}, nil
}

func (j *insert[T]) Begin(s *engine.Engine, _ string) error {
	*j.fields().status = j.kind.working
	j.kind.table(s).Put(*j.fields().path, j.row)
	return nil
}

func (j *insert[T]) Work(_ context.Context, s *engine.Engine) error {
	return j.from.CopyTo(s, *j.fields().id, *j.fields().sizeGb)
}

func (j *insert[T]) Finish(s *engine.Engine) {
	of := j.fields()
	*of.status = state.StatusReady
	j.kind.finish(&j.row, s.Contents.Stored(*of.id))
	j.kind.table(s).Put(*of.path, j.row)
}

func (j *insert[T]) Undo(s *engine.Engine, _ string) {
	of := j.fields()
	j.kind.table(s).Remove(*of.path)
	s.RemoveContent(*of.id, *of.path)
}

// MarshalJSON implements json.Marshaler: the record of an operation names the resource by
// its kind.
func (j *insert[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{j.kind.record: j.row, "From": j.from, "Force": j.force})
}

// UnmarshalJSON implements json.Unmarshaler.
func (j *insert[T]) UnmarshalJSON(text []byte) error {
	var kept map[string]json.RawMessage
	if err := json.Unmarshal(text, &kept); err != nil {
		return err
	}
	for name, value := range map[string]any{j.kind.record: &j.row, "From": &j.from, "Force": &j.force} {
		if kept[name] == nil {
			continue // only images are made by force
		}
		if err := json.Unmarshal(kept[name], value); err != nil {
			return err
		}
	}
	return nil
}
