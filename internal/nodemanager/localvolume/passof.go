package localvolume

import stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"

// passOf is the pass that a volume needs now.
func passOf(volume *stowagev1alpha1.LocalVolume) pass {
	copies := volume.Spec.Source != "" && !isProvisioned(volume)
	return pass{
		path: string(volume.Spec.Path), namespace: volume.Spec.ClaimRef.Namespace,
		long: !volume.DeletionTimestamp.IsZero() || copies,
	}
}
