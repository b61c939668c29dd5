package gcemock

// setAutoDelete says whether a disk is deleted with its instance.
type setAutoDelete struct {
	quick
	Instance, Device string
	DiskID           uint64 `json:",string"`
	AutoDelete       bool
}

func newSetAutoDelete(r *request) (job, error) {
	query := r.URL.Query()
	wanted := query.Get("autoDelete")
	if wanted != "true" && wanted != "false" {
		return nil, errInvalid("autoDelete", wanted, "Must be true or false.")
	}
	return &setAutoDelete{
		Instance: r.named("instances", "instance"), Device: query.Get("deviceName"), AutoDelete: wanted == "true",
	}, nil
}

func (j *setAutoDelete) path() string { return attachmentPath(j.Instance, j.Device) }

func (j *setAutoDelete) Locks() []string { return []string{j.Instance} }

func (j *setAutoDelete) Accept(s *Engine) (target, error) {
	instance, err := s.findInstance(j.Instance)
	if err != nil {
		return target{}, err
	}
	row, found := s.attachments.get(j.path())
	if !found || row.Taken != "" {
		return target{}, errNoDevice(j.Device)
	}
	j.DiskID = row.DiskID
	return target{path: j.Instance, id: instance.Id}, nil
}

func (j *setAutoDelete) Begin(s *Engine, _ string) error {
	if row, found := s.attachments.get(j.path()); !found || row.DiskID != j.DiskID {
		return errNoDevice(j.Device)
	}
	return nil
}

func (j *setAutoDelete) Finish(s *Engine) {
	row, _ := s.attachments.get(j.path())
	row.AutoDelete = j.AutoDelete
	s.attachments.put(j.path(), row)
}
