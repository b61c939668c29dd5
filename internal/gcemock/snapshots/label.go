package snapshots

import (
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// label is the job that replaces the labels of a copy.
type label[T any] struct {
	engine.Quick
	kind        *kind[T]
	Path        string
	ID          uint64 `json:",string"`
	Labels      map[string]string
	Fingerprint string
}

func (k *kind[T]) newLabel(r *wire.Request) (engine.Job, error) {
	var requested compute.GlobalSetLabelsRequest
	err := r.Into(&requested)
	return &label[T]{kind: k, Path: r.Named(k.name+"s", "resource"), Labels: requested.Labels, Fingerprint: requested.LabelFingerprint}, err
}

func (j *label[T]) Locks() []string { return []string{j.Path} }

func (j *label[T]) Accept(s *engine.Engine) (engine.Target, error) {
	if err := wire.CheckLabels(j.Labels); err != nil {
		return engine.Target{}, err
	}
	row := j.kind.table(s).Rows[j.Path]
	j.ID = *j.kind.fields(&row).id
	return engine.Target{Path: j.Path, ID: j.ID}, j.Begin(s, "")
}

// Begin finds the copy that was there when the job was accepted: another may have its name.
func (j *label[T]) Begin(s *engine.Engine, _ string) error {
	row, found := j.kind.table(s).Get(j.Path)
	of := j.kind.fields(&row)
	switch {
	case !found || *of.id != j.ID:
		return wire.NotFound(j.Path)
	case *of.fingerprint != j.Fingerprint:
		return wire.FingerprintMismatch()
	}
	return nil
}

func (j *label[T]) Finish(s *engine.Engine) {
	row, found := j.kind.table(s).Get(j.Path)
	of := j.kind.fields(&row)
	if !found || *of.id != j.ID {
		return // it went with its disk during the operation
	}
	*of.labels, *of.fingerprint = j.Labels, wire.FingerprintOf(j.Labels)
	j.kind.table(s).Put(j.Path, row)
}
