package wake

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Request returns the request to reconcile an object.
func Request(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// Requests returns the requests to reconcile objects.
func Requests[T any, P interface {
	*T
	client.Object
}](objects []T) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(objects))
	for i := range objects {
		requests = append(requests, Request(P(&objects[i])))
	}
	return requests
}

// RequestNamed returns the request to reconcile a cluster-scoped object.
func RequestNamed(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// AddEarly adds a request ahead of those for objects that are there when a watch begins, and
// behind those for what happens from then on. It only matters if the queue has priorities.
func AddEarly(queue Queue, request reconcile.Request) {
	ordered, hasPriorities := queue.(priorityqueue.PriorityQueue[reconcile.Request])
	if !hasPriorities {
		queue.Add(request)
		return
	}
	ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority / 2)}, request)
}

// Unhurried is for the reads of map functions, which need not wait for the cache: the
// reconcile that they start waits for it.
const Unhurried = client.DisableReadYourWritesConsistency
