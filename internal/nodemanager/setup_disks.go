package nodemanager

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// watchRetry is how soon disks are watched again after that failed.
const watchRetry = 10 * time.Second

// nodeHandler wakes the pods that want disks when something was attached to the node,
// or taken from it. A node has no other way to hear of it: it may get attachments, and
// not watch them. And it has the disks in use told again when the status, of a node
// that was made anew for example, doesn't say so any more.
func (r *Reconciler) nodeHandler() handler.TypedEventHandler[client.Object, types.UID] {
	look := func(before, now *corev1.Node, q queue) {
		r.inUse.Compare(now)
		if before == nil || !slices.Equal(before.Status.VolumesAttached, now.Status.VolumesAttached) {
			r.wakeUsers(q)
		}
	}
	return handler.TypedFuncs[client.Object, types.UID]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(nil, e.Object.(*corev1.Node), q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			look(e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node), q)
		},
	}
}

// watchDisks wakes the pods that want disks when disks came or went. What failed for
// want of one is tried at once.
func (r *Reconciler) watchDisks(ctx context.Context, q queue) error {
	wake := func() {
		for _, pod := range r.inUse.Pods() {
			r.operations.Forget(pod)
		}
		r.wakeUsers(q)
	}
	go func() {
		for ctx.Err() == nil {
			if err := r.Disks.Watch(ctx, wake); err != nil {
				logf.FromContext(ctx).Error(err, "watching disks come and go")
			}
			select {
			case <-ctx.Done():
			case <-time.After(watchRetry):
			}
		}
	}()
	return nil
}

func (r *Reconciler) wakeUsers(q queue) {
	for _, pod := range r.inUse.Pods() {
		q.Add(pod)
	}
}
