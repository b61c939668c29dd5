package controllers

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// stale is a cache that still shows some objects as they were.
type stale struct {
	client.Client
	objects []client.Object
}

func (c stale) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	for _, old := range c.objects {
		if client.ObjectKeyFromObject(old) == key && copyInto(old, object) {
			return nil
		}
	}
	return c.Client.Get(ctx, key, object, options...)
}

// copyInto copies between objects of one kind, and reports whether they are.
func copyInto(from, to client.Object) bool {
	switch typed := to.(type) {
	case *corev1.PersistentVolumeClaim:
		return copyTyped(from, typed)
	case *corev1.PersistentVolume:
		return copyTyped(from, typed)
	case *stowagev1alpha1.StorageBackend:
		return copyTyped(from, typed)
	case *storagev1.VolumeAttachment:
		return copyTyped(from, typed)
	case *corev1.Node:
		return copyTyped(from, typed)
	case *storagev1.StorageClass:
		return copyTyped(from, typed)
	}
	return false
}

func copyTyped[T any, P interface {
	*T
	DeepCopyInto(*T)
}](from runtime.Object, to P) bool {
	typed, same := from.(any).(P)
	if same {
		typed.DeepCopyInto((*T)(to))
	}
	return same
}

// withoutVolume is a cache that has not seen one volume yet.
type withoutVolume struct {
	client.Client
	name string
}

func (c withoutVolume) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isVolume := object.(*corev1.PersistentVolume); isVolume && key.Name == c.name {
		return apierrors.NewNotFound(corev1.Resource("persistentvolumes"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}

func (c withoutVolume) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	if volumes, isVolumes := list.(*corev1.PersistentVolumeList); isVolumes {
		volumes.Items = slices.DeleteFunc(volumes.Items, func(pv corev1.PersistentVolume) bool { return pv.Name == c.name })
	}
	return err
}

// unlistable is an API server that fails lists.
type unlistable struct{ client.Reader }

func (unlistable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("listing was not expected")
}

// withoutNodes is a cache that has not seen any node yet.
type withoutNodes struct{ client.Client }

func (c withoutNodes) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isNode := object.(*corev1.Node); isNode {
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}

// withoutAttachments is a cache that has not seen any attachment yet.
type withoutAttachments struct{ client.Client }

func (c withoutAttachments) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, isAttachments := list.(*storagev1.VolumeAttachmentList); isAttachments {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

// staleList is a cache that still lists one attachment, as it was.
type staleList struct {
	client.Client
	attachment *storagev1.VolumeAttachment
}

func (c staleList) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if attachments, isAttachments := list.(*storagev1.VolumeAttachmentList); isAttachments {
		attachments.Items = []storagev1.VolumeAttachment{*c.attachment}
		return nil
	}
	return c.Client.List(ctx, list, options...)
}
