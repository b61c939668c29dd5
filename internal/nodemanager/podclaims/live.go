package podclaims

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/sharedread"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// onNode selects the pods of a node.
	onNode = "spec.nodeName"
	// slowList is how long a list may take. After one that took longer, lists aren't shared for unsharedFor: pods can be large, and an
	// API server may read those of all nodes for it.
	slowList    = time.Second
	unsharedFor = time.Minute
)

// Live finds the node's pods in the API server itself. An answer is never older than its call.
//
// A call reads its own pod. Calls that come beside it share lists of all pods of the node: so a hundred pods that go at once take a few
// requests in place of a hundred. Live may be used concurrently.
type Live struct {
	api  client.Reader
	node string
	// calls are those in progress.
	calls  atomic.Int32
	shared *sharedread.Reads[struct{}, map[types.UID]*corev1.Pod]
	// unsharedUntil is a time in Unix nanoseconds.
	unsharedUntil atomic.Int64
}

// NewLive returns a Live for a node.
func NewLive(api client.Reader, node string) *Live {
	l := &Live{api: api, node: node}
	l.shared = sharedread.New(l.listAll).Paced()
	return l
}

// Find finds a pod; nil if it is gone. cached is nil if the cache doesn't have the pod.
func (l *Live) Find(ctx context.Context, uid types.UID, cached *corev1.Pod) (*corev1.Pod, error) {
	pod, err := l.find(ctx, uid, cached)
	return pod, wrap.Error(err, "reading pod %s before its volumes are unmounted", uid)
}

func (l *Live) find(ctx context.Context, uid types.UID, cached *corev1.Pod) (*corev1.Pod, error) {
	if cached == nil {
		return l.among(ctx, uid)
	}
	isAlone := l.calls.Add(1) == 1
	defer l.calls.Add(-1)
	if isAlone || time.Now().UnixNano() < l.unsharedUntil.Load() {
		return l.get(ctx, uid, cached)
	}
	pod, err := l.among(ctx, uid)
	if err != nil { // perhaps only because of another pod
		return l.get(ctx, uid, cached)
	}
	return pod, nil
}

// get reads one pod. A node may not get a pod that doesn't exist, or that the authorizer doesn't know to be on the node. Such a pod is
// listed.
func (l *Live) get(ctx context.Context, uid types.UID, cached *corev1.Pod) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := l.api.Get(ctx, client.ObjectKeyFromObject(cached), pod)
	switch {
	case err == nil && pod.UID == uid:
		return pod, nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return nil, err
	}
	named, err := l.list(ctx, client.InNamespace(cached.Namespace), client.MatchingFields{onNode: l.node, "metadata.name": cached.Name})
	return named[uid], err
}

// among finds a pod in a list that calls share, and returns a copy.
func (l *Live) among(ctx context.Context, uid types.UID) (*corev1.Pod, error) {
	pods, err := l.shared.Get(ctx, struct{}{})
	return pods[uid].DeepCopy(), err
}

func (l *Live) listAll(ctx context.Context, _ struct{}) (map[types.UID]*corev1.Pod, error) {
	began := time.Now()
	pods, err := l.list(ctx, client.MatchingFields{onNode: l.node})
	if time.Since(began) > slowList {
		l.unsharedUntil.Store(time.Now().Add(unsharedFor).UnixNano())
	}
	return pods, err
}

func (l *Live) list(ctx context.Context, options ...client.ListOption) (map[types.UID]*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := l.api.List(ctx, pods, options...); err != nil {
		return nil, err
	}
	byUID := make(map[types.UID]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		byUID[pods.Items[i].UID] = &pods.Items[i]
	}
	return byUID, nil
}
