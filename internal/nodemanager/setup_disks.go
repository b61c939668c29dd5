package nodemanager

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/stowage-dev/stowage/internal/wake"
)

// nodeHandler wakes the pods that want disks when volumesAttached of the node changes: a node
// may get attachments, and not watch them. If volumesInUse is wrong, as after the Node was
// created again, it is reported again.
func (r *Reconciler) nodeHandler() handler.TypedEventHandler[client.Object, types.UID] {
	compare := func(before, now *corev1.Node, q queue) {
		r.inUse.Compare(now)
		if before == nil || !slices.Equal(before.Status.VolumesAttached, now.Status.VolumesAttached) {
			r.wakeUsers(q)
		}
	}
	return handler.TypedFuncs[client.Object, types.UID]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { compare(nil, e.Object.(*corev1.Node), q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			compare(e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node), q)
		},
	}
}

// watchDisks wakes the pods that want disks when device nodes come or go. What failed for want
// of a disk is retried at once.
func (r *Reconciler) watchDisks(ctx context.Context, q queue) error {
	go wake.WhileWatching(ctx, "watching disks come and go", r.Disks.Watch, func() {
		for _, pod := range r.inUse.Pods() {
			r.operations.Forget(pod)
		}
		r.wakeUsers(q)
	})
	return nil
}

func (r *Reconciler) wakeUsers(q queue) {
	for _, pod := range r.inUse.Pods() {
		q.Add(pod)
	}
}
