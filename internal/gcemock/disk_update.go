package gcemock

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"
)

// updateDisk changes the size and performance of a disk, also while it is attached, and
// its access mode. Zero values stay as they are.
type updateDisk struct {
	quick
	Path             string
	ID               uint64 `json:",string"`
	SizeGb           int64
	Iops, Throughput int64
	AccessMode       string
}

func newResizeDisk(r *request) (job, error) {
	var asked compute.DisksResizeRequest
	if err := r.into(&asked); err != nil {
		return nil, err
	}
	if asked.SizeGb == 0 {
		return nil, errInvalid("sizeGb", "0", "A size is required.")
	}
	return &updateDisk{Path: r.named("disks", "disk"), SizeGb: asked.SizeGb}, nil
}

// newUpdateDisk reads a request to change the fields that its mask names.
func newUpdateDisk(r *request) (job, error) {
	var asked compute.Disk
	if err := r.into(&asked); err != nil {
		return nil, err
	}
	wanted := &updateDisk{Path: r.named("disks", "disk")}
	query := r.URL.Query()
	mask := strings.Split(strings.Join(append(query["paths"], query["updateMask"]...), ","), ",")
	for _, field := range mask {
		switch field {
		case "sizeGb":
			wanted.SizeGb = asked.SizeGb
		case "provisionedIops":
			wanted.Iops = asked.ProvisionedIops
		case "provisionedThroughput":
			wanted.Throughput = asked.ProvisionedThroughput
		case "accessMode":
			wanted.AccessMode = asked.AccessMode
		case "":
			return nil, errInvalid("updateMask", "", "A mask with the fields to update is required.")
		default:
			return nil, errNotServed("updates of field " + field)
		}
	}
	return wanted, nil
}

func (j *updateDisk) Locks() []string { return []string{j.Path} }

func (j *updateDisk) Accept(s *Engine) (target, error) {
	row, err := s.findReadyDisk(j.Path)
	if err != nil {
		return target{}, err
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, j.check(s, row)
}

// check checks that a disk can be changed as wanted.
func (j *updateDisk) check(s *Engine, row compute.Disk) error {
	if j.SizeGb != 0 && j.SizeGb <= row.SizeGb {
		return errInvalid("sizeGb", strconv.FormatInt(j.SizeGb, 10),
			fmt.Sprintf("New disk size '%d' GiB must be larger than existing size '%d' GiB.", j.SizeGb, row.SizeGb))
	}
	if j.AccessMode != "" && j.AccessMode != row.AccessMode {
		if row.AccessMode == accessRead {
			return errInvalid("resource.accessMode", j.AccessMode, "A disk that is READ_ONLY_MANY stays so.")
		}
		if err := s.refuseUsers(j.Path); err != nil {
			return err
		}
	}
	wanted := j.applied(row)
	if err := settleKind(&wanted); err != nil {
		return err
	}
	if err := checkPool(s, j.Path, wanted); err != nil {
		return err
	}
	return checkQuota(s, j.Path, wanted.SizeGb)
}

func (j *updateDisk) applied(row compute.Disk) compute.Disk {
	row.SizeGb = cmp.Or(j.SizeGb, row.SizeGb)
	row.ProvisionedIops = cmp.Or(j.Iops, row.ProvisionedIops)
	row.ProvisionedThroughput = cmp.Or(j.Throughput, row.ProvisionedThroughput)
	row.AccessMode = cmp.Or(j.AccessMode, row.AccessMode)
	return row
}

func (j *updateDisk) Begin(s *Engine, _ string) error {
	row, err := s.sameDisk(j.Path, j.ID)
	switch {
	case err != nil:
		return err
	case row.Status != statusReady:
		return errNotReady(j.Path)
	}
	return j.check(s, row)
}

func (j *updateDisk) Work(ctx context.Context, s *Engine) error {
	if j.SizeGb == 0 {
		return nil
	}
	if err := s.contents.make(j.ID, j.SizeGb); err != nil {
		return err
	}
	// Devices that appear from now on have the new size.
	s.Lock()
	shown := s.devicesOf(j.Path)
	s.Unlock()
	for _, device := range shown {
		if err := s.options.Attacher.Resize(ctx, device); err != nil {
			return err
		}
	}
	return nil
}

func (j *updateDisk) Finish(s *Engine) {
	row, err := s.sameDisk(j.Path, j.ID)
	if err != nil {
		s.removeContent(j.ID, j.Path) // it went with its instance meanwhile
		return
	}
	s.disks.put(j.Path, j.applied(row))
}
