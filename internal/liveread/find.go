package liveread

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Find reads a cluster-scoped object from the first reader that has it, and returns nil if none
// has. A cache may not show a new object yet: a live reader after it confirms that it is gone.
func Find[T client.Object](ctx context.Context, name string, object T, readers ...client.Reader) (T, error) {
	var none T
	for _, reader := range readers {
		err := reader.Get(ctx, client.ObjectKey{Name: name}, object)
		switch {
		case err == nil:
			return object, nil
		case client.IgnoreNotFound(err) != nil:
			return none, err
		}
	}
	return none, nil
}

// Uncopied reads a cache, and returns its very objects. Its callers don't change them: they share them.
func Uncopied(cache client.Reader) client.Reader { return uncopied{cache} }

type uncopied struct{ client.Reader }

func (u uncopied) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return u.Reader.Get(ctx, key, object, append(options, client.UnsafeDisableDeepCopy)...)
}
