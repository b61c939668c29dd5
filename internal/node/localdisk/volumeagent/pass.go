package volumeagent

import (
	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/turns"
)

// passOf is the pass that a volume needs now.
func passOf(volume *stowagev1alpha1.NodeVolume) turns.Pass {
	copies := volume.Spec.Source != "" && !spec.IsProvisioned(volume)
	return turns.Pass{
		Path: string(volume.Spec.Path), Namespace: volume.Spec.ClaimRef.Namespace,
		Long: !volume.DeletionTimestamp.IsZero() || copies,
	}
}
