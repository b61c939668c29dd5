package resolve

import (
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// ResolvedVolume has all that is needed to mount a volume.
type ResolvedVolume struct {
	volumes.Spec
	Plugin volumes.Plugin
	// Refused is why a pod that never had it doesn't get it; nil if it does.
	Refused error
}

// Location is the volume's location in the pod's directory.
func (v *ResolvedVolume) Location() poddir.Location {
	return poddir.Location{Plugin: v.Plugin.Name(), Name: v.Name(), Block: v.IsBlock()}
}

// AwaitDriver returns what the volume waits for if its driver isn't on the node. The volume's
// directory is dir.
func (v *ResolvedVolume) AwaitDriver(dir string) error {
	if err := volumes.MissingOf(v.Plugin, v.Spec, dir); err != nil {
		return WaitFor("waiting for its CSI driver: %v", err)
	}
	return nil
}
