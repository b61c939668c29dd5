package gcemock

import (
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"
)

// ensureInstance makes an instance that runs, at once, unless it is there.
func ensureInstance(s *Engine, project, zone, name, machineType string) error {
	if !slices.Contains(s.options.Places.Projects, project) || !slices.Contains(s.options.Places.Zones, zone) {
		return fmt.Errorf("making instance %s: there is no zone %s in project %s", name, zone, project)
	}
	path := zonePath(project, zone) + "/instances/" + name
	return s.update(func() error {
		if _, found := s.instances.get(path); found {
			return nil
		}
		if err := checkName(name); err != nil {
			return fmt.Errorf("making instance %s: %w", name, err)
		}
		of := zonePath(project, zone) + "/machineTypes/" + machineType
		if err := checkMachineType(of, zonePath(project, zone)); err != nil {
			return fmt.Errorf("making instance %s: %w", name, err)
		}
		s.instances.put(path, compute.Instance{
			Name: name, Zone: zonePath(project, zone), SelfLink: path, Id: newID(),
			MachineType:       of,
			CreationTimestamp: s.timestamp(), LabelFingerprint: fingerprintOf(nil),
		})
		setStatus(s, path, statusInstanceRunning)
		return nil
	})
}
