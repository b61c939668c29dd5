package persistentvolumeclaim

import (
	"context"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/binder"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/wrap"
)

// wait says why a claim can't go on now: what its condition and its event tell,
// and what makes Stowage look again.
type wait struct {
	// reason and message of the condition Bindable.
	reason, message string
	// event is the reason of the event; empty where none is due.
	event string
	// warning events tell of what somebody has to mend.
	warning bool
	// phase of the claim meanwhile.
	phase corev1.PersistentVolumeClaimPhase
	// after is when to look again. Zero: when something changes.
	after time.Duration
	// rarer has a claim look again the more rarely, the older it is.
	rarer bool
	// counts tells that the message counts volumes, which come and go: that alone is no
	// news.
	counts bool
	// patient waits are told only once they have lasted: mostly they are over sooner.
	patient bool
	// yields keeps a failure that was told before: nothing else is known yet.
	yields bool
	// retry is an error after which to look again, ever more slowly.
	retry error
}

const ProvisioningFailed = "ProvisioningFailed"

// ClaimScope is what the steps of one pass over a claim know and find out.
type ClaimScope struct {
	Claim  *corev1.PersistentVolumeClaim
	Class  *storagev1.StorageClass
	wish   binder.Wish
	Volume *corev1.PersistentVolume
	// asked tells that the index was asked for a volume.
	asked bool
}

// claimStep brings a claim further. It returns a wait where it can't go on yet,
// and nil where the next step may run.
type claimStep func(context.Context, *ClaimScope) (*wait, error)

const AnnSelectedNode = volume.AnnSelectedNode

// annotate replaces the annotations of a claim. It returns a wait where the cache still
// shows a claim that is gone.
func annotate(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, annotations map[string]string) (*wait, error) {
	before := claim.DeepCopy()
	claim.Annotations = annotations
	err := writer.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return &wait{}, nil
	}
	return nil, wrap.Error(err, "annotating claim %s/%s", claim.Namespace, claim.Name)
}

// Open opens a backend for calls that a claim waits for: an answer wakes the claim.
type Open func(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error)

// AnnPreResizeCapacity of a volume is what its file system had before the volume
// grew: what a claim has that is bound to it before a node grew the file system.
const AnnPreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
