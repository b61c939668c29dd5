package disks

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// updateDisk changes the size and performance of a disk, also while it is attached, and
// its access mode. Zero values stay as they are.
type updateDisk struct {
	engine.Quick
	Path             string
	ID               uint64 `json:",string"`
	SizeGb           int64
	Iops, Throughput int64
	AccessMode       string
}

func newResizeDisk(r *wire.Request) (engine.Job, error) {
	var requested compute.DisksResizeRequest
	if err := r.Into(&requested); err != nil {
		return nil, err
	}
	if requested.SizeGb == 0 {
		return nil, wire.Invalid("sizeGb", "0", "A size is required.")
	}
	return &updateDisk{Path: r.Named("disks", "disk"), SizeGb: requested.SizeGb}, nil
}

// newUpdateDisk reads a request to change the fields that its mask names.
func newUpdateDisk(r *wire.Request) (engine.Job, error) {
	var requested compute.Disk
	if err := r.Into(&requested); err != nil {
		return nil, err
	}
	wanted := &updateDisk{Path: r.Named("disks", "disk")}
	query := r.URL.Query()
	mask := strings.Split(strings.Join(append(query["paths"], query["updateMask"]...), ","), ",")
	for _, field := range mask {
		switch field {
		case "sizeGb":
			wanted.SizeGb = requested.SizeGb
		case "provisionedIops":
			wanted.Iops = requested.ProvisionedIops
		case "provisionedThroughput":
			wanted.Throughput = requested.ProvisionedThroughput
		case "accessMode":
			wanted.AccessMode = requested.AccessMode
		case "":
			return nil, wire.Invalid("updateMask", "", "A mask with the fields to update is required.")
		default:
			return nil, wire.NotServed("updates of field " + field)
		}
	}
	return wanted, nil
}

func (j *updateDisk) Locks() []string { return []string{j.Path} }

func (j *updateDisk) Accept(s *engine.Engine) (engine.Target, error) {
	row, err := s.FindReadyDisk(j.Path)
	if err != nil {
		return engine.Target{}, err
	}
	j.ID = row.Id
	return engine.Target{Path: j.Path, ID: row.Id}, j.check(s, row)
}

// check checks that a disk can be changed as wanted.
func (j *updateDisk) check(s *engine.Engine, row compute.Disk) error {
	if j.SizeGb != 0 && j.SizeGb <= row.SizeGb {
		return wire.Invalid("sizeGb", strconv.FormatInt(j.SizeGb, 10),
			fmt.Sprintf("New disk size '%d' GiB must be larger than existing size '%d' GiB.", j.SizeGb, row.SizeGb))
	}
	if j.AccessMode != "" && j.AccessMode != row.AccessMode {
		if row.AccessMode == state.AccessRead {
			return wire.Invalid("resource.accessMode", j.AccessMode, "A disk that is READ_ONLY_MANY stays so.")
		}
		if err := s.RefuseUsers(j.Path); err != nil {
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

func (j *updateDisk) Begin(s *engine.Engine, _ string) error {
	row, err := s.SameDisk(j.Path, j.ID)
	switch {
	case err != nil:
		return err
	case row.Status != state.StatusReady:
		return wire.NotReady(j.Path)
	}
	return j.check(s, row)
}

func (j *updateDisk) Work(ctx context.Context, s *engine.Engine) error {
	if j.SizeGb == 0 {
		return nil
	}
	if err := s.Contents.Make(j.ID, j.SizeGb); err != nil {
		return err
	}
	// Devices that appear from now on have the new size.
	s.Lock()
	shown := s.DevicesOf(j.Path)
	s.Unlock()
	for _, device := range shown {
		if err := s.Options.Attacher.Resize(ctx, device); err != nil {
			return err
		}
	}
	return nil
}

func (j *updateDisk) Finish(s *engine.Engine) {
	row, err := s.SameDisk(j.Path, j.ID)
	if err != nil {
		s.RemoveContent(j.ID, j.Path) // it went with its instance during the operation
		return
	}
	s.Disks.Put(j.Path, j.applied(row))
}
