package wake

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Request is the request to reconcile an object.
func Request(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// Requests are the requests to reconcile claims.
func Requests(claims []corev1.PersistentVolumeClaim) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(claims))
	for i := range claims {
		requests = append(requests, Request(&claims[i]))
	}
	return requests
}

// RequestNamed is the request to reconcile a cluster-scoped object.
func RequestNamed(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// Unhurried reads for a map function, which has no use for waiting: whom it wakes
// waits for itself.
const Unhurried = client.DisableReadYourWritesConsistency
