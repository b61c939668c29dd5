package liveread

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of returns a reader that bypasses the manager's cache.
func Of(mgr ctrl.Manager) client.Reader { return Checked(mgr.GetAPIReader()) }

// Checked returns a reader for names that users wrote. A name that no object can have is
// NotFound.
func Checked(reader client.Reader) client.Reader { return possibleNames{reader} }

// possibleNames is a reader for names that users wrote into annotations and references. For an
// impossible name such as "a/b" the client returns an error of its own, and the reconciler
// would retry it for ever.
type possibleNames struct{ client.Reader }

// Get returns NotFound if the name or the namespace is impossible.
func (r possibleNames) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if !isPossible(key) {
		kind := object.GetObjectKind().GroupVersionKind()
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: cmp.Or(kind.Kind, "object")}, key.String())
	}
	return r.Reader.Get(ctx, key, object, options...)
}

func isPossible(key client.ObjectKey) bool {
	return len(content.IsPathSegmentName(key.Name)) == 0 && len(content.IsPathSegmentName(key.Namespace)) == 0
}
