package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/wake"
)

// nodeReader is the source of reads about a node: the cache, or the API server itself.
type nodeReader interface {
	get(ctx context.Context, key client.ObjectKey, object client.Object) error
	podsOn(ctx context.Context, node string) ([]corev1.Pod, error)
	attachmentsOn(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error)
}

// find reads an object, and reports whether it exists.
func find(ctx context.Context, from nodeReader, key client.ObjectKey, object client.Object) (bool, error) {
	err := from.get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %T %s: %w", object, key, err)
	}
	return true, nil
}

// cache reads the cache; its objects must not be changed. Lists do not wait until the cache
// shows all writes of this process, because there is always one in flight. Where an own write
// matters, the object is read by name.
type cache struct{ client client.Reader }

func (c cache) get(ctx context.Context, key client.ObjectKey, object client.Object) error {
	return c.client.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
}

func (c cache) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := c.client.List(ctx, pods, client.MatchingFields{index.PodsByNode: node}, wake.Unhurried, client.UnsafeDisableDeepCopy)
	return pods.Items, err
}

func (c cache) attachmentsOn(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	err := c.client.List(ctx, attachments, client.MatchingFields{index.AttachmentsByNode: node}, wake.Unhurried, client.UnsafeDisableDeepCopy)
	return attachments.Items, err
}

// apiServer reads the API server itself, before a step by force.
type apiServer struct {
	live   client.Reader
	shared liveread.Reads
}

func (a apiServer) get(ctx context.Context, key client.ObjectKey, object client.Object) error {
	return a.live.Get(ctx, key, object)
}

func (a apiServer) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := a.live.List(ctx, pods, client.MatchingFields{index.PodsByNode: node})
	return pods.Items, err
}

func (a apiServer) attachmentsOn(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	all, err := a.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var attachments []storagev1.VolumeAttachment
	for _, object := range all.Node[node] {
		attachments = append(attachments, *object)
	}
	return attachments, nil
}
