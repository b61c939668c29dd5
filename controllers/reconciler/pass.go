package reconciler

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Pass is one pass over an object of which the cache only shows whether there is work. What is done is decided on a live read.
type Pass struct {
	Kind   string
	Object client.Object
	// Settled reports, from the cache, whether there is nothing to do.
	Settled func() (bool, error)
	Execute func() (ctrl.Result, error)
	// Forget drops what is remembered of an object that is gone.
	Forget func(types.NamespacedName)
}

// Run reads the object from the cache and then live, and brings it as far as possible now.
func (p Pass) Run(ctx context.Context, cached, live client.Reader, request ctrl.Request) (ctrl.Result, error) {
	if err := cached.Get(ctx, request.NamespacedName, p.Object); err != nil {
		if apierrors.IsNotFound(err) {
			p.Forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if settled, err := p.Settled(); settled || err != nil {
		return ctrl.Result{}, err
	}
	if err := live.Get(ctx, request.NamespacedName, p.Object); err != nil {
		return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "reading %s %s", p.Kind, strings.TrimPrefix(request.String(), "/"))
	}
	return AfterConflict(p.Execute())
}

// AfterConflict has a pass come again soon that lost to another writer.
func AfterConflict(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: wake.AfterConflict}, nil
	}
	return result, err
}
