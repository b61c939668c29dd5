package instances

import (
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// setAutoDelete reports whether a disk is deleted with its instance.
type setAutoDelete struct {
	engine.Quick
	Instance, Device string
	DiskID           uint64 `json:",string"`
	AutoDelete       bool
}

func newSetAutoDelete(r *wire.Request) (engine.Job, error) {
	query := r.URL.Query()
	wanted := query.Get("autoDelete")
	if wanted != "true" && wanted != "false" {
		return nil, wire.Invalid("autoDelete", wanted, "Must be true or false.")
	}
	return &setAutoDelete{
		Instance: r.Named("instances", "instance"), Device: query.Get("deviceName"), AutoDelete: wanted == "true",
	}, nil
}

func (j *setAutoDelete) path() string { return state.AttachmentPath(j.Instance, j.Device) }

func (j *setAutoDelete) Locks() []string { return []string{j.Instance} }

func (j *setAutoDelete) Accept(s *engine.Engine) (engine.Target, error) {
	instance, err := s.FindInstance(j.Instance)
	if err != nil {
		return engine.Target{}, err
	}
	row, found := s.Attachments.Get(j.path())
	if !found || row.Taken != "" {
		return engine.Target{}, errNoDevice(j.Device)
	}
	j.DiskID = row.DiskID
	return engine.Target{Path: j.Instance, ID: instance.Id}, nil
}

func (j *setAutoDelete) Begin(s *engine.Engine, _ string) error {
	if row, found := s.Attachments.Get(j.path()); !found || row.DiskID != j.DiskID {
		return errNoDevice(j.Device)
	}
	return nil
}

func (j *setAutoDelete) Finish(s *engine.Engine) {
	row, _ := s.Attachments.Get(j.path())
	row.AutoDelete = j.AutoDelete
	s.Attachments.Put(j.path(), row)
}
