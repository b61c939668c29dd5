package gcemock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

// Statuses of instances.
const (
	statusProvisioning    = "PROVISIONING"
	statusStaging         = "STAGING"
	statusInstanceRunning = "RUNNING"
	statusStopping        = "STOPPING"
	statusTerminated      = "TERMINATED"
)

// instanceView is the instance as a client sees it.
func (s *Engine) instanceView(r *request, row compute.Instance) *compute.Instance {
	attached := s.attachedTo(row.SelfLink)
	row.Kind = "compute#instance"
	slices.SortFunc(attached, func(a, b attachment) int { return cmp.Compare(a.Index, b.Index) })
	for _, one := range attached {
		if one.Taken == "" {
			row.Disks = append(row.Disks, r.attachedDisk(one, s.disks.rows[one.Disk].SizeGb))
		}
	}
	row.Zone = r.link(row.Zone)
	row.MachineType = r.link(row.MachineType)
	row.SelfLink = r.link(row.SelfLink)
	return &row
}

func (s *Engine) getInstance(r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.findInstance(r.named("instances", "instance"))
	if err != nil {
		return nil, err
	}
	return s.instanceView(r, row), nil
}

func (s *Engine) findInstance(path string) (compute.Instance, error) {
	row, found := s.instances.get(path)
	if !found {
		return compute.Instance{}, errNotFound(path)
	}
	return row, nil
}

// sameInstance finds the instance that had a path when an operation was accepted:
// another may have its name by now.
func (s *Engine) sameInstance(path string, id uint64) (compute.Instance, error) {
	row, err := s.findInstance(path)
	if err == nil && row.Id != id {
		err = errNotFound(path)
	}
	return row, err
}

// instancesBelow lists the instances of a zone, or of a whole project.
func (s *Engine) instancesBelow(r *request, scope string) []listed[*compute.Instance] {
	var all []listed[*compute.Instance]
	for _, path := range s.instances.below(scope) {
		row := s.instances.rows[path]
		all = append(all, listed[*compute.Instance]{
			scope: zoneOf(path), name: row.Name, created: row.CreationTimestamp, item: s.instanceView(r, row),
		})
	}
	return all
}

func (s *Engine) listInstances(r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	items, next, err := paged(r, s.instancesBelow(r, r.scope()))
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/instances"
	return &compute.InstanceList{
		Kind: "compute#instanceList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id),
	}, nil
}

func (s *Engine) aggregateInstances(r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	items, next, err := paged(r, s.instancesBelow(r, projectPath(r.project)))
	if err != nil {
		return nil, err
	}
	id := projectPath(r.project) + "/aggregated/instances"
	answer := &compute.InstanceAggregatedList{
		Kind: "compute#instanceAggregatedList", Id: id, NextPageToken: next, SelfLink: r.link(id),
		Items: map[string]compute.InstancesScopedList{},
	}
	for _, zone := range s.options.Places.Zones {
		var here compute.InstancesScopedList
		for _, item := range items {
			if baseName(item.Zone) == zone {
				here.Instances = append(here.Instances, item)
			}
		}
		if here.Instances == nil {
			here.Warning = &compute.InstancesScopedListWarning{
				Code: noResults, Message: noResultsMessage("zones/" + zone),
				Data: []*compute.InstancesScopedListWarningData{{Key: "scope", Value: "zones/" + zone}},
			}
		}
		answer.Items["zones/"+zone] = here
	}
	return answer, nil
}

func (s *Engine) setStatus(instance, status string) {
	row, _ := s.instances.get(instance)
	row.Status = status
	switch status {
	case statusTerminated:
		row.LastStopTimestamp = s.timestamp()
	case statusInstanceRunning:
		row.LastStartTimestamp = s.timestamp()
	}
	s.instances.put(instance, row)
}

// plugAll makes all devices of an instance appear.
func (s *Engine) plugAll(ctx context.Context, instance string) error {
	return s.plug(ctx, s.devicesAt(instance))
}

func (s *Engine) plug(ctx context.Context, devices []hotplug.Device) error {
	for _, device := range devices {
		if err := s.options.Attacher.Attach(ctx, device); err != nil {
			return err
		}
	}
	return nil
}

// unplugAll takes all devices of an instance away, as far as they can be.
func (s *Engine) unplugAll(ctx context.Context, instance string) error {
	var failed error
	for _, device := range s.devicesAt(instance) {
		failed = errors.Join(failed, s.options.Attacher.Detach(ctx, device))
	}
	return failed
}

// powerOff takes all devices of an instance away, or none.
func (s *Engine) powerOff(ctx context.Context, instance string) error {
	err := s.unplugAll(ctx, instance)
	if err != nil {
		return errors.Join(err, s.plugAll(ctx, instance))
	}
	return nil
}

func (s *Engine) devicesAt(instance string) []hotplug.Device {
	s.Lock()
	defer s.Unlock()
	var devices []hotplug.Device
	for _, row := range s.attachedTo(instance) {
		devices = append(devices, s.device(row))
	}
	return devices
}

// restoreDevices makes the devices of running instances appear again, which a restart
// of the machine took away. What can't is said and left: a guest may not run yet. Those
// of attachments under way come with their operation, unless that is to end in error.
func (s *Engine) restoreDevices(ctx context.Context) {
	for path, row := range s.instances.rows {
		if row.Status != statusInstanceRunning {
			continue
		}
		var devices []hotplug.Device
		for _, attached := range s.attachedTo(path) {
			if attached.Taken == "" {
				devices = append(devices, s.device(attached))
			}
		}
		if err := s.plug(ctx, devices); err != nil {
			s.options.Log.Error(err, "devices are missing on an instance", "instance", path)
		}
	}
}
