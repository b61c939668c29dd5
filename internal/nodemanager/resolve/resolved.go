package resolve

import (
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// ResolvedVolume is a volume of which all is known that is needed to mount it.
type ResolvedVolume struct {
	volumes.Spec
	Plugin volumes.Plugin
	// Refused says why it isn't mounted for a pod that never had it; nil if it is.
	Refused error
}

// Location is where the volume lies in the pod's directory.
func (v *ResolvedVolume) Location() poddir.Location {
	return poddir.Location{Plugin: v.Plugin.Name(), Name: v.Name(), Block: v.IsBlock()}
}
