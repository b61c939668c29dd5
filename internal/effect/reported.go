package effect

import (
	"context"
	"errors"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reported is a reconciler whose errors are logged when they change.
type reported[K comparable] struct {
	reconcile.TypedReconciler[K]

	mu sync.Mutex
	// failed is the last error of each key, until the key is reconciled without one.
	failed map[K]string
}

// Reported returns the reconciler with a logger in its context that names the object in one value.
// It marks an error that equals the previous one of the same object: see IsRepeated. The
// controller retries all of them alike.
func Reported[K comparable](of reconcile.TypedReconciler[K]) reconcile.TypedReconciler[K] {
	return &reported[K]{TypedReconciler: of, failed: map[K]string{}}
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reported[K]) Reconcile(ctx context.Context, key K) (reconcile.Result, error) {
	result, err := r.TypedReconciler.Reconcile(logf.IntoContext(ctx, ctrl.Log.WithValues("reconciling", key)), key)
	if r.isRepeated(key, err) {
		err = repeated{err}
	}
	return result, err
}

func (r *reported[K]) isRepeated(key K, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.failed, key)
		return false
	}
	if r.failed[key] == err.Error() {
		return true
	}
	r.failed[key] = err.Error()
	return false
}

// repeated is an error that equals the previous one of its object.
type repeated struct{ error }

// Unwrap returns the error itself.
func (r repeated) Unwrap() error { return r.error }

// IsRepeated reports whether Reported marked an error: the log has it already.
func IsRepeated(err error) bool {
	var is repeated
	return errors.As(err, &is)
}
