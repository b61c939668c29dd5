package instances

import (
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Ensure makes an instance that runs, at once, unless it is there.
func Ensure(s *engine.Engine, project, zone, name, machineType string) error {
	if !slices.Contains(s.Options.Locations.Projects, project) || !slices.Contains(s.Options.Locations.Zones, zone) {
		return fmt.Errorf("making instance %s: there is no zone %s in project %s", name, zone, project)
	}
	path := wire.ZonePath(project, zone) + "/instances/" + name
	return s.Update(func() error {
		if _, found := s.Instances.Get(path); found {
			return nil
		}
		if err := wire.CheckName(name); err != nil {
			return fmt.Errorf("making instance %s: %w", name, err)
		}
		of := wire.ZonePath(project, zone) + "/machineTypes/" + machineType
		if err := checkMachineType(of, wire.ZonePath(project, zone)); err != nil {
			return fmt.Errorf("making instance %s: %w", name, err)
		}
		s.Instances.Put(path, compute.Instance{
			Name: name, Zone: wire.ZonePath(project, zone), SelfLink: path, Id: wire.NewID(),
			MachineType:       of,
			CreationTimestamp: s.Timestamp(), LabelFingerprint: wire.FingerprintOf(nil),
		})
		setStatus(s, path, state.StatusInstanceRunning)
		return nil
	})
}
