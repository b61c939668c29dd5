package step

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// CachedVolume returns the claim's volume from the cache, or nil. It must not be changed.
func CachedVolume(ctx context.Context, cache client.Reader, scope *Scope) (*corev1.PersistentVolume, error) {
	if scope.Volume != nil {
		return scope.Volume, nil
	}
	pv := &corev1.PersistentVolume{}
	err := cache.Get(ctx, client.ObjectKey{Name: scope.Claim.Spec.VolumeName}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", scope.Claim.Spec.VolumeName)
	}
	return pv, nil
}

// IsServed reports whether a volume is in a StorageBackend.
func IsServed(ctx context.Context, served drivers.Drivers, pv *corev1.PersistentVolume) (bool, error) {
	if len(index.BackendOf(pv)) == 0 {
		return false, nil
	}
	return served.ServesVolume(ctx, pv)
}

// Holding opens the backend of a volume. Its errors are not the request's fault: the call is
// retried.
func (o Open) Holding(
	ctx context.Context, cache client.Reader, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume,
) (backend.Backend, error) {
	name := index.BackendOf(pv)[0]
	object := &stowagev1alpha1.StorageBackend{}
	if err := cache.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, backend.Unavailable.Errorf("reading StorageBackend %s, which holds volume %s: %w", name, pv.Name, err)
	}
	opened, err := o(claim, object)
	if err != nil {
		return nil, backend.Unavailable.Errorf("%w", err)
	}
	return opened, nil
}

// IsCurrent reports, from a live read, whether a claim is as the cache shows it. A new leader's cache
// may show one that is gone, or whose call ended since.
func IsCurrent(ctx context.Context, live client.Reader, claim *corev1.PersistentVolumeClaim) (bool, error) {
	current := &corev1.PersistentVolumeClaim{}
	err := live.Get(ctx, client.ObjectKeyFromObject(claim), current)
	if client.IgnoreNotFound(err) != nil {
		return false, wrap.Error(err, "reading claim %s/%s", claim.Namespace, claim.Name)
	}
	return !apierrors.IsNotFound(err) && current.UID == claim.UID && current.ResourceVersion == claim.ResourceVersion, nil
}

// WriteStatus writes the changes that set makes to a claim's status, and reports whether there were any.
// The resourceVersion is the fence: nodes and other leaders write about the same change, and a changed
// request has to be read first.
func WriteStatus(ctx context.Context, writer client.StatusClient, claim *corev1.PersistentVolumeClaim, set func()) (changed bool, err error) {
	before := claim.DeepCopy()
	set()
	if equality.Semantic.DeepEqual(before, claim) {
		return false, nil
	}
	err = writer.Status().Patch(ctx, claim, patch.ClaimStatus(before, client.MergeFromWithOptimisticLock{}))
	return err == nil, err
}

// Sooner joins the waits of two steps that don't depend on each other: what one waits for must not
// hold up the other. The first one's reason prevails.
func Sooner(first, second *Wait) *Wait {
	if first == nil || second == nil {
		if first == nil {
			return second
		}
		return first
	}
	joined := *first
	if joined.After == 0 || second.After != 0 && second.After < joined.After {
		joined.After = second.After
	}
	if joined.Retry == nil {
		joined.Retry = second.Retry
	}
	return &joined
}
