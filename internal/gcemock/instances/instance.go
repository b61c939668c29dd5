// Package instances serves instances, their machine types, and the disks that they have. It lists and
// reads them. Its jobs insert, delete, stop, start and reset instances, and attach and detach disks.
// It knows which instances can share a disk.
//
// It never changes a disk itself, but for the times of its attachments.
package instances

import (
	"cmp"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// instanceView is the instance as a client sees it.
func instanceView(s *engine.Engine, r *wire.Request, row compute.Instance) *compute.Instance {
	attached := s.AttachedTo(row.SelfLink)
	row.Kind = "compute#instance"
	slices.SortFunc(attached, func(a, b state.Attachment) int { return cmp.Compare(a.Index, b.Index) })
	for _, one := range attached {
		if one.Taken == "" {
			row.Disks = append(row.Disks, attachedDisk(r, one, s.Disks.Rows[one.Disk].SizeGb))
		}
	}
	row.Zone = r.Link(row.Zone)
	row.MachineType = r.Link(row.MachineType)
	row.SelfLink = r.Link(row.SelfLink)
	return &row
}

func getInstance(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.FindInstance(r.Named("instances", "instance"))
	if err != nil {
		return nil, err
	}
	return instanceView(s, r, row), nil
}

// instancesBelow lists the instances of a zone, or of a whole project.
func instancesBelow(s *engine.Engine, r *wire.Request, scope string) []wire.Listed[*compute.Instance] {
	var all []wire.Listed[*compute.Instance]
	for _, path := range s.Instances.Below(scope) {
		row := s.Instances.Rows[path]
		all = append(all, wire.Listed[*compute.Instance]{
			Scope: wire.ScopeOf(path), Name: row.Name, Created: row.CreationTimestamp, Item: instanceView(s, r, row),
		})
	}
	return all
}

func listInstances(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	return wire.List(r, "instanceList", r.Scope()+"/instances", instancesBelow(s, r, r.Scope()))
}

func aggregateInstances(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	return wire.AggregatedList(r, "instanceAggregatedList", "instances", s.Options.Locations.ZoneScopes(), instancesBelow(s, r, wire.ProjectPath(r.Project)))
}

func setStatus(s *engine.Engine, instance, status string) {
	row, _ := s.Instances.Get(instance)
	row.Status = status
	switch status {
	case state.StatusTerminated:
		row.LastStopTimestamp = s.Timestamp()
	case state.StatusInstanceRunning:
		row.LastStartTimestamp = s.Timestamp()
	}
	s.Instances.Put(instance, row)
}

// attachedDisk is the attachment as a client sees it in its instance.
func attachedDisk(r *wire.Request, row state.Attachment, sizeGb int64) *compute.AttachedDisk {
	return &compute.AttachedDisk{
		Kind: "compute#attachedDisk", Type: "PERSISTENT", Interface: state.SCSI,
		Source: r.Link(row.Disk), DeviceName: row.DeviceName, Mode: row.Mode,
		Boot: row.Boot, AutoDelete: row.AutoDelete, Index: row.Index, DiskSizeGb: sizeGb,
		ForceSendFields: []string{"Boot", "AutoDelete", "Index"},
	}
}
