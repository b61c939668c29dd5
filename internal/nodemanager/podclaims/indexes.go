package podclaims

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// UIDIndex is the index of the pod cache that Find reads.
	UIDIndex = "metadata.uid"
	// ClaimIndex is the one that PodsUsing reads.
	ClaimIndex = "spec.volumes.persistentVolumeClaim.claimName"
)

// Index adds the indexes of pods to a cache, before it is started.
func Index(ctx context.Context, cached client.FieldIndexer) error {
	for name, valuesOf := range map[string]client.IndexerFunc{UIDIndex: UID, ClaimIndex: ClaimNames} {
		if err := cached.IndexField(ctx, &corev1.Pod{}, name, valuesOf); err != nil {
			return fmt.Errorf("indexing pods by %s: %w", name, err)
		}
	}
	return nil
}

// UID is the value of a pod in UIDIndex.
func UID(object client.Object) []string {
	return []string{string(object.(*corev1.Pod).UID)}
}

// ClaimNames are the values of a pod in ClaimIndex.
func ClaimNames(object client.Object) []string {
	var names []string
	for _, claim := range ClaimsOf(object.(*corev1.Pod)) {
		names = append(names, claim.Name)
	}
	return names
}
