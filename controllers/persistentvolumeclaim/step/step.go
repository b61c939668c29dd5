// Package step has what the steps of the claims' reconciler share: the scope of one pass
// over a claim, and the Wait by which a step says why the claim can't go on now, and when to
// look again.
package step

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Wait says why a claim can't go on now: what its condition and its event tell,
// and what makes Stowage look again.
type Wait struct {
	// Reason and message of the condition Bindable.
	Reason, Message string
	// Event is the reason of the event; empty where none is due.
	Event string
	// Warning events tell of what somebody has to mend.
	Warning bool
	// Phase of the claim meanwhile.
	Phase corev1.PersistentVolumeClaimPhase
	// After is when to look again. Zero: when something changes.
	After time.Duration
	// Rarer has a claim look again the more rarely, the older it is.
	Rarer bool
	// Counts tells that the message counts volumes, which come and go: that alone is no
	// news.
	Counts bool
	// Patient waits are told only once they have lasted: mostly they are over sooner.
	Patient bool
	// Yields keeps a failure that was told before: nothing else is known yet.
	Yields bool
	// Retry is an error after which to look again, ever more slowly.
	Retry error
}

// ProvisioningFailed is the reason of conditions and events of claims that get no volume.
const ProvisioningFailed = "ProvisioningFailed"

// Scope is what the steps of one pass over a claim know and find out.
type Scope struct {
	Claim  *corev1.PersistentVolumeClaim
	Class  *storagev1.StorageClass
	Wish   binder.Wish
	Volume *corev1.PersistentVolume
	// Asked tells that the index was asked for a volume.
	Asked bool
}

// Func brings a claim further. It returns a wait where it can't go on yet,
// and nil where the next step may run.
type Func func(context.Context, *Scope) (*Wait, error)

// AnnSelectedNode names the node that the scheduler chose for a claim's first consumer.
const AnnSelectedNode = volume.AnnSelectedNode

// Annotate replaces the annotations of a claim. It returns a wait where the cache still
// shows a claim that is gone.
func Annotate(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, annotations map[string]string) (*Wait, error) {
	before := claim.DeepCopy()
	claim.Annotations = annotations
	err := writer.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return &Wait{}, nil
	}
	return nil, wrap.Error(err, "annotating claim %s/%s", claim.Namespace, claim.Name)
}

// Open opens a backend for calls that a claim waits for: an answer wakes the claim.
type Open func(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error)

// AnnPreResizeCapacity of a volume is what its file system had before the volume
// grew: what a claim has that is bound to it before a node grew the file system.
const AnnPreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
