package volumeagent

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
)

// maker makes and grows volumes, beside the other volumes of the node.
type maker struct {
	node   string
	client client.Reader
	store  *store.Store
	finder diskFinder
	copies copySources
}

// make makes what is on the disk, or adopts it if the spec orders that.
func (m maker) make(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if err := spec.CheckSpec(volume); err != nil {
		return err
	}
	var source *layout.Volume
	if !volume.Spec.Adopt {
		var err error
		if source, err = m.copies.sourceOf(ctx, volume); err != nil {
			return err
		}
	}
	wanted, err := m.finder.onAcceptedDisk(ctx, volume)
	if err != nil {
		return err
	}
	wanted.Source = source
	others := spec.Others(ctx, m.client, m.node, volume.Name)
	if volume.Spec.Adopt {
		return m.store.AdoptFound(ctx, wanted, others)
	}
	return m.store.Make(ctx, wanted, others)
}

// logMade logs a volume that was made or adopted, once its status says so.
func logMade(ctx context.Context, volume *stowagev1alpha1.NodeVolume, err error) {
	switch {
	case err != nil:
	case volume.Spec.Adopt:
		effect.Log(ctx, effect.Adopted, volume.CreationTimestamp.Time, volume)
	default:
		effect.Log(ctx, effect.Provisioned, volume.CreationTimestamp.Time, volume)
	}
}

// grow grants the capacity that the volume requests, if there is room, and reports it in a
// condition. It returns when to reconcile again. Without room the volume stays mountable, at
// its old capacity.
func (m maker) grow(ctx context.Context, volume *stowagev1alpha1.NodeVolume) time.Duration {
	if isSmaller(volume) {
		if err := m.store.Grant(ctx, spec.VolumeOf(volume), spec.Others(ctx, m.client, m.node, volume.Name)); err != nil {
			setCondition(volume, stowagev1alpha1.GrantedCondition, reasons.Of(err), layout.MessageOf(err, m.store.Base))
			return problemRetry
		}
	}
	setGranted(volume)
	return checkInterval
}
