package podstatus

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[types.UID]

// EventHandler maps a pod's events to its UID, but for echoes. An update may replace a pod by another one of the
// same name: both are reconciled.
func EventHandler() handler.TypedEventHandler[client.Object, types.UID] {
	return handler.TypedFuncs[client.Object, types.UID]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(e.Object.GetUID()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if IsEcho(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)) {
				return
			}
			q.Add(e.ObjectOld.GetUID())
			q.Add(e.ObjectNew.GetUID())
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.Add(e.Object.GetUID()) },
	}
}

// IsEcho reports whether a pod changed only by the condition that this program writes, or by the time of
// a deletion that had begun: no volume depends on it. Such an update needs no pass. A removed condition
// does.
func IsEcho(before, now *corev1.Pod) bool {
	if !slices.ContainsFunc(now.Status.Conditions, isOwn) || before.UID != now.UID {
		return false
	}
	return equality.Semantic.DeepEqual(withoutEchoes(before), withoutEchoes(now))
}

func isOwn(condition corev1.PodCondition) bool {
	return condition.Type == stowagev1alpha1.VolumesReadyCondition
}

// withoutEchoes returns the pod without that condition, without the time of a deletion that has begun,
// and without versions and managers, which any write changes.
func withoutEchoes(pod *corev1.Pod) *corev1.Pod {
	bare := *pod
	bare.ResourceVersion, bare.Generation, bare.ManagedFields = "", 0, nil
	if pod.DeletionTimestamp != nil {
		bare.DeletionTimestamp, bare.DeletionGracePeriodSeconds = &metav1.Time{}, nil
	}
	bare.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), isOwn)
	return &bare
}
