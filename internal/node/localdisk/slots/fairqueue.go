package slots

import "sigs.k8s.io/controller-runtime/pkg/reconcile"

// fairQueue has the parked requests of each namespace. The namespaces alternate: one with
// many volumes delays no other. Its zero value is usable.
type fairQueue struct {
	// order are the namespaces that have requests, the next one first.
	order []string
	of    map[string][]reconcile.Request
}

func (q *fairQueue) add(namespace string, request reconcile.Request) {
	if q.of == nil {
		q.of = map[string][]reconcile.Request{}
	}
	if len(q.of[namespace]) == 0 {
		q.order = append(q.order, namespace)
	}
	q.of[namespace] = append(q.of[namespace], request)
}

func (q *fairQueue) isEmpty() bool { return len(q.order) == 0 }

// next removes the next request. There must be one.
func (q *fairQueue) next() reconcile.Request {
	namespace := q.order[0]
	next, left := q.of[namespace][0], q.of[namespace][1:]
	q.order = q.order[1:]
	if len(left) == 0 {
		delete(q.of, namespace)
		return next
	}
	q.of[namespace] = left
	q.order = append(q.order, namespace)
	return next
}
