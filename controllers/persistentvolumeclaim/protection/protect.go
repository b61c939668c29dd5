// Package protection keeps claims that pods use from being deleted, and sets the condition
// since when no pod refers to a claim. Before it releases a claim, a live read confirms that
// no pod uses it.
package protection

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Protector keeps claims that pods use from being deleted, and sets since when none does.
type Protector struct {
	client client.Client
	shared liveread.Reads
}

// New makes a protector.
func New(deps reconciler.Dependencies) *Protector {
	return &Protector{client: deps.Client, shared: deps.Reads}
}

// EnsureProtected adds the finalizer to a claim that was created while the
// admission plug-in was off.
func (r *Protector) EnsureProtected(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	if controllerutil.ContainsFinalizer(scope.Claim, uses.ClaimProtection) {
		return nil, nil
	}
	before := scope.Claim.DeepCopy()
	controllerutil.AddFinalizer(scope.Claim, uses.ClaimProtection)
	err := r.client.Patch(ctx, scope.Claim, patch.Fenced(before))
	if apierrors.IsNotFound(err) {
		// The cache still shows a deleted claim: there is nothing left to do.
		return &step.Wait{}, nil
	}
	return nil, wrap.Error(err, "protecting claim %s/%s", scope.Claim.Namespace, scope.Claim.Name)
}

// AwaitUnused keeps a deleted claim while a pod uses it. The cache only saves live reads: a
// live read has to confirm that no pod uses the claim.
func (r *Protector) AwaitUnused(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	cached, err := r.CachedPods(ctx, claim)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(cached, uses.Of(claim)) {
		return waitForPods(claim, cached), nil
	}
	if !controllerutil.ContainsFinalizer(claim, uses.ClaimProtection) {
		return nil, nil
	}
	pods, err := r.shared.Pods.Get(ctx, claim.Namespace)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(pods, uses.Of(claim)) {
		return waitForPods(claim, pods), nil
	}
	return nil, nil
}
