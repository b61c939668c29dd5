// Package step has what the steps of the claims' reconciler share. Scope is the state of one
// pass over a claim. With a Wait a step explains why the claim cannot proceed, and when to
// reconcile again.
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
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Wait is why a claim cannot proceed: the content of its condition and its event, and when to
// reconcile again.
type Wait struct {
	// Reason and message of the condition Bindable.
	Reason, Message string
	// Event is the reason of the event; empty means no event.
	Event string
	// Warning events need action by a person.
	Warning bool
	// Phase of the claim while it waits. Empty: Pending.
	Phase corev1.PersistentVolumeClaimPhase
	// After is when to reconcile again. Zero: when something changes.
	After time.Duration
	// Rarer makes the interval grow with the age of the claim.
	Rarer bool
	// Counts means that the message counts volumes, which change often: a new count alone is
	// no reason for an event.
	Counts bool
	// Patient waits are reported only after a while: most are over sooner.
	Patient bool
	// Yields keeps an earlier failure in the condition: nothing else is known yet.
	Yields bool
	// Retry is an error that is retried with backoff.
	Retry error
}

// Scope is what the steps of one pass over a claim know and find out.
type Scope struct {
	Claim   *corev1.PersistentVolumeClaim
	Class   *storagev1.StorageClass
	Request binder.ClaimRequest
	Volume  *corev1.PersistentVolume
	// Placed is true if the volume lies where the claim's data source does. Then no pod has to choose a
	// node first, whatever the class says.
	Placed bool
	// Searched is true if the index searched a volume for the claim.
	Searched bool
}

// Func is one step for a claim. It returns a Wait if the claim cannot proceed, and nil if the
// next step may run.
type Func func(context.Context, *Scope) (*Wait, error)

// AnnSelectedNode names the node that the scheduler chose for a claim's first consumer.
const AnnSelectedNode = volume.AnnSelectedNode

// Annotate replaces the annotations of a claim. It returns a Wait if the cache still shows a
// deleted claim.
func Annotate(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, annotations map[string]string) (*Wait, error) {
	before := claim.DeepCopy()
	claim.Annotations = annotations
	err := writer.Patch(ctx, claim, patch.Fenced(before))
	if apierrors.IsNotFound(err) {
		return &Wait{}, nil
	}
	return nil, wrap.Error(err, "annotating claim %s/%s", claim.Namespace, claim.Name)
}

// Open opens a backend for calls that a claim waits for: an answer wakes the claim.
type Open func(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error)

// AnnPreResizeCapacity of a volume is the size of its file system before the volume grew. It
// is the capacity of a claim that is bound before a node grows the file system.
const AnnPreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
