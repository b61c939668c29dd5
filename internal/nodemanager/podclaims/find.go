package podclaims

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Find finds a pod in the cache; nil if it isn't there.
func Find(ctx context.Context, cached client.Reader, uid types.UID) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := cached.List(ctx, pods, client.MatchingFields{UIDIndex: string(uid)}); err != nil {
		return nil, fmt.Errorf("looking for pod %s in the cache: %w", uid, err)
	}
	if len(pods.Items) == 0 {
		return nil, nil
	}
	return &pods.Items[0], nil
}
