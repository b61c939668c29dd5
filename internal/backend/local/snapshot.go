package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Snapshotter = (*localBackend)(nil)

// answerAfter is how long an agent may take before it is reported that its answer is awaited.
const answerAfter = 5 * time.Minute

// CreateSnapshot writes a NodeVolume that is a copy of the volume, then waits for the node's agent.
func (b *localBackend) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	snapshot, err := b.ownSnapshot(ctx, request.ID)
	if err == nil && snapshot == nil {
		snapshot, err = b.requestSnapshot(ctx, request)
	}
	switch {
	case err != nil:
		return nil, err
	case snapshot.Spec.Source != request.Volume:
		return nil, backend.Conflict.Errorf("NodeVolume %s is a snapshot of volume %s", snapshot.Name, snapshot.Spec.Source)
	case request.Unwanted:
		// The NodeVolume exists, so its deletion ends whatever its agent does.
		return described(snapshot), nil
	case !snapshot.DeletionTimestamp.IsZero():
		return nil, backend.InProgress.Errorf("waiting for the deletion of an earlier NodeVolume %s", snapshot.Name)
	case !isMade(snapshot):
		return nil, b.unmade(ctx, snapshot)
	}
	return described(snapshot), nil
}

// requestSnapshot writes the NodeVolume of a snapshot, on the node of its volume.
func (b *localBackend) requestSnapshot(ctx context.Context, request backend.SnapshotRequest) (*stowagev1alpha1.NodeVolume, error) {
	if len(request.Parameters) > 0 {
		return nil, backend.Invalid.Errorf("snapshots of local volumes have no parameters, and the VolumeSnapshotClass has %d: use a class without", len(request.Parameters))
	}
	if request.Unwanted {
		return nil, backend.NotFound.Errorf("no snapshot %s was begun", request.ID)
	}
	source, err := b.ownVolume(ctx, request.Volume)
	if err == nil {
		err = checkKeepable(source, request)
	}
	if err != nil {
		return nil, err
	}
	snapshot := b.newVolume(backend.Request{ID: request.ID, Capacity: copied(source), VolumeMode: source.Spec.VolumeMode, Claim: source.Spec.ClaimRef})
	snapshot.Spec.SnapshotUID = request.Owner
	beginAs(snapshot, source)
	switch err := b.Client.Create(ctx, snapshot); {
	case apierrors.IsInvalid(err):
		return nil, backend.Invalid.Errorf("creating NodeVolume %s: %w", request.ID, err)
	case apierrors.IsAlreadyExists(err):
		return nil, backend.InProgress.Errorf("NodeVolume %s was created just now: it is read again", request.ID)
	case err != nil:
		return nil, fmt.Errorf("creating NodeVolume %s: %w", request.ID, err)
	case snapshot.Spec.SnapshotUID != request.Owner:
		return nil, b.discard(ctx, snapshot)
	}
	return snapshot, nil
}

// discard deletes a NodeVolume that the API server doesn't know to be a snapshot: its CRD is older. No agent makes
// one whose name doesn't fit.
func (b *localBackend) discard(ctx context.Context, snapshot *stowagev1alpha1.NodeVolume) error {
	before := snapshot.DeepCopy()
	snapshot.Finalizers = nil
	err := b.patch(ctx, before, snapshot, "discarding")
	if err == nil {
		err = client.IgnoreNotFound(b.Client.Delete(ctx, snapshot, client.Preconditions{UID: &snapshot.UID}))
	}
	if err != nil {
		return err
	}
	return backend.Unavailable.Errorf("the CRD of NodeVolumes has no snapshots: install the CRDs of this version")
}

// checkKeepable returns an error where there is no volume, or no data, of which a snapshot can be made.
func checkKeepable(source *stowagev1alpha1.NodeVolume, request backend.SnapshotRequest) error {
	id := request.Volume
	switch {
	case source == nil:
		return backend.NotFound.Errorf("there is no NodeVolume %s, of which a snapshot was to be made", id)
	case source.Spec.ClaimRef.Namespace != request.Namespace:
		return backend.Invalid.Errorf("volume %s was made for a claim of namespace %s, and only there it has snapshots", id, source.Spec.ClaimRef.Namespace)
	case !source.DeletionTimestamp.IsZero() || source.Spec.RemoveData:
		return backend.NotFound.Errorf("volume %s, of which a snapshot was to be made, is being removed", id)
	case !isMade(source):
		return backend.Unavailable.Errorf("volume %s, of which a snapshot is to be made, isn't made yet", id)
	case isLost(source):
		return backend.Unavailable.Errorf("volume %s, of which a snapshot is to be made, is lost: mount its disk", id)
	}
	return nil
}

// unmade says why there is no snapshot yet. One that the agent refuses is removed: no later call is
// needed to find it.
func (b *localBackend) unmade(ctx context.Context, snapshot *stowagev1alpha1.NodeVolume) error {
	if meta.FindStatusCondition(snapshot.Status.Conditions, stowagev1alpha1.ProvisionedCondition) == nil {
		return awaiting(snapshot.CreationTimestamp, "waiting for the agent of node %s to make snapshot %s", snapshot.Spec.NodeName, snapshot.Name)
	}
	err := outcome(snapshot)
	if errors.Is(err, backend.Invalid) {
		if failure := b.markForDeletion(ctx, snapshot); failure != nil {
			return failure
		}
	}
	return err
}

// DeleteSnapshot removes the NodeVolume. The agent removes the data before the object goes, and not
// while a volume is made of it.
func (b *localBackend) DeleteSnapshot(ctx context.Context, handle string) error {
	snapshot, err := b.ownSnapshot(ctx, handle)
	if snapshot == nil || err != nil {
		return err
	}
	if err := b.markForDeletion(ctx, snapshot); err != nil {
		return err
	}
	since := ptr.Deref(snapshot.DeletionTimestamp, metav1.Now())
	return awaiting(since, "waiting for the agent of node %s to remove snapshot %s%s", snapshot.Spec.NodeName, handle, lastMessage(snapshot))
}

// FindSnapshot reads the NodeVolume.
func (b *localBackend) FindSnapshot(ctx context.Context, handle string) (*backend.Snapshot, error) {
	snapshot, err := b.ownSnapshot(ctx, handle)
	switch {
	case err != nil:
		return nil, err
	case snapshot == nil || !snapshot.DeletionTimestamp.IsZero():
		return nil, backend.NotFound.Errorf("there is no snapshot %s", handle)
	}
	return described(snapshot), nil
}

// described is what a NodeVolume says of a snapshot. Its data is of a time shortly before its agent
// reported it.
func described(snapshot *stowagev1alpha1.NodeVolume) *backend.Snapshot {
	found := &backend.Snapshot{Handle: snapshot.Name, Volume: snapshot.Spec.Source, RestoreSize: ptr.Deref(snapshot.Status.Capacity, snapshot.Spec.Capacity)}
	if made := meta.FindStatusCondition(snapshot.Status.Conditions, stowagev1alpha1.ProvisionedCondition); isMade(snapshot) {
		found.Created, found.Ready = made.LastTransitionTime.Time, !isLost(snapshot)
	}
	return found
}

// snapshotToRestore reads the snapshot that a volume is to be a copy of. Its data belongs to a
// namespace, whatever VolumeSnapshot names it.
func (b *localBackend) snapshotToRestore(ctx context.Context, request backend.Request) (*stowagev1alpha1.NodeVolume, error) {
	handle := request.Source.Snapshot
	snapshot, err := b.ownSnapshot(ctx, handle)
	switch {
	case err != nil:
		return nil, err
	case snapshot == nil:
		return nil, backend.Invalid.Errorf("there is no snapshot %s, which was to be restored: create the claim again, from another", handle)
	case snapshot.Spec.ClaimRef.Namespace != request.SourceNamespace() && !request.Source.Given:
		return nil, backend.Invalid.Errorf("snapshot %s is of a claim of namespace %s, and isn't one of the VolumeSnapshot's namespace", handle, snapshot.Spec.ClaimRef.Namespace)
	}
	return snapshot, checkCopyable(snapshot, request)
}

// ownSnapshot reads the NodeVolume of a snapshot live: nil where there is none. One that isn't a
// snapshot of this backend is an error of kind Conflict.
func (b *localBackend) ownSnapshot(ctx context.Context, handle string) (*stowagev1alpha1.NodeVolume, error) {
	if !backend.IsSnapshotID(handle) {
		return nil, backend.Invalid.Errorf("%.200q is no snapshot of a local volume: those are named snapshot-<uid>", handle)
	}
	snapshot := &stowagev1alpha1.NodeVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: handle}, snapshot)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading NodeVolume %s: %w", handle, err)
	case handle != backend.SnapshotID(snapshot.Spec.SnapshotUID) || snapshot.Spec.Backend != b.name:
		return nil, backend.Conflict.Errorf("NodeVolume %s belongs to backend %s, for the VolumeSnapshot with uid %q: it is left alone",
			handle, snapshot.Spec.Backend, snapshot.Spec.SnapshotUID)
	}
	return snapshot, nil
}

// awaiting is the error of a call that an agent has yet to carry out. At first there is nothing to
// report: the caller is woken.
func awaiting(since metav1.Time, format string, arguments ...any) error {
	if time.Since(since.Time) < answerAfter {
		return backend.Queued.Errorf(format, arguments...)
	}
	return backend.InProgress.Errorf(format, arguments...)
}

func isMade(volume *stowagev1alpha1.NodeVolume) bool {
	return meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
}

func isLost(volume *stowagev1alpha1.NodeVolume) bool {
	ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	return ready != nil && ready.Reason == stowagev1alpha1.ReasonLost
}
