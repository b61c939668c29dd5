package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// cachedNode reads the cache; its objects must not be changed. Lists do not wait until the
// cache shows all writes of this process, because there is always one in flight. Where an own
// write matters, the object is read by name.
type cachedNode struct{ *Reconciler }

func (c cachedNode) get(ctx context.Context, key client.ObjectKey, object client.Object) error {
	return c.client.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
}

func (c cachedNode) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := c.client.List(ctx, pods, client.MatchingFields{index.PodsByNode: node}, wake.Unhurried, client.UnsafeDisableDeepCopy)
	return pods.Items, err
}

func (c cachedNode) attachmentsOn(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	err := c.client.List(ctx, attachments, client.MatchingFields{index.AttachmentsByNode: node}, wake.Unhurried, client.UnsafeDisableDeepCopy)
	return attachments.Items, err
}

// liveNode reads the API server itself, before a step by force.
type liveNode struct{ *Reconciler }

func (l liveNode) get(ctx context.Context, key client.ObjectKey, object client.Object) error {
	return l.live.Get(ctx, key, object)
}

func (l liveNode) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := l.live.List(ctx, pods, client.MatchingFields{index.PodsByNode: node})
	return pods.Items, err
}

func (l liveNode) attachmentsOn(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	all, err := l.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var attachments []storagev1.VolumeAttachment
	for _, object := range all.Node[node] {
		attachments = append(attachments, *object)
	}
	return attachments, nil
}
