package podclaims

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// FindLive finds a pod of the node in the API server; nil if it is gone. cached is nil if the cache
// doesn't have the pod. A node may not get a pod that doesn't exist, or that the authorizer doesn't
// know to be on the node. Such a pod is listed.
func FindLive(ctx context.Context, live client.Reader, node string, uid types.UID, cached *corev1.Pod) (*corev1.Pod, error) {
	fields := client.MatchingFields{"spec.nodeName": node}
	options := []client.ListOption{fields}
	if cached != nil {
		pod := &corev1.Pod{}
		err := live.Get(ctx, client.ObjectKeyFromObject(cached), pod)
		switch {
		case err == nil && pod.UID == uid:
			return pod, nil
		case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading pod %s before its volumes are unmounted: %w", uid, err)
		}
		fields["metadata.name"] = cached.Name
		options = append(options, client.InNamespace(cached.Namespace))
	}
	pods := &corev1.PodList{}
	if err := live.List(ctx, pods, options...); err != nil {
		return nil, fmt.Errorf("reading pod %s before its volumes are unmounted: %w", uid, err)
	}
	for i := range pods.Items {
		if pods.Items[i].UID == uid {
			return &pods.Items[i], nil
		}
	}
	return nil, nil
}
