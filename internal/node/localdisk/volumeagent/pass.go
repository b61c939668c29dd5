package volumeagent

import (
	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/slots"
)

// passOf is the pass that a volume needs now.
func passOf(volume *stowagev1alpha1.LocalVolume) slots.Pass {
	copies := volume.Spec.Source != "" && !spec.IsProvisioned(volume)
	return slots.Pass{
		Path: string(volume.Spec.Path), Namespace: volume.Spec.ClaimRef.Namespace,
		Long: !volume.DeletionTimestamp.IsZero() || copies,
	}
}
