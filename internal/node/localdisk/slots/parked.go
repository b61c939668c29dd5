package slots

import "sigs.k8s.io/controller-runtime/pkg/reconcile"

// turns are requests that are parked, a queue for each namespace. Namespaces have their
// turns one after the other, so that one with many volumes holds up no other. Its zero
// value is usable.
type turns struct {
	// order are the namespaces that have requests, the next one first.
	order []string
	of    map[string][]reconcile.Request
}

func (t *turns) add(namespace string, request reconcile.Request) {
	if t.of == nil {
		t.of = map[string][]reconcile.Request{}
	}
	if len(t.of[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	t.of[namespace] = append(t.of[namespace], request)
}

func (t *turns) isEmpty() bool { return len(t.order) == 0 }

// next takes out the request whose turn it is. There must be one.
func (t *turns) next() reconcile.Request {
	namespace := t.order[0]
	next, left := t.of[namespace][0], t.of[namespace][1:]
	t.order = t.order[1:]
	if len(left) == 0 {
		delete(t.of, namespace)
		return next
	}
	t.of[namespace] = left
	t.order = append(t.order, namespace)
	return next
}
