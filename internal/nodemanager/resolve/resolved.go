package resolve

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

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

// VisibleAt is the path of the volume in the pod's directory.
func (v *ResolvedVolume) VisibleAt(tree poddir.Tree, pod types.UID) string {
	return v.Plugin.Path(tree.VolumeDir(pod, v.Location()))
}

// MeasuredAt returns what has the volume's driver measure it, in its directory; nil if the driver
// measures none.
func (v *ResolvedVolume) MeasuredAt(dir string) func(context.Context) (volumes.Usage, error) {
	measurer, is := v.Plugin.(volumes.Measurer)
	if !is || !measurer.Measures(v.Spec) {
		return nil
	}
	return func(ctx context.Context) (volumes.Usage, error) { return measurer.Measure(ctx, v.Spec, dir) }
}

// AwaitDriver returns what the volume waits for if its driver isn't on the node. The volume's
// directory is dir.
func (v *ResolvedVolume) AwaitDriver(dir string) error {
	if err := volumes.MissingOf(v.Plugin, v.Spec, dir); err != nil {
		return WaitFor("waiting for its CSI driver: %v", err)
	}
	return nil
}
