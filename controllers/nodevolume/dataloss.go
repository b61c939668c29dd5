package nodevolume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// dataLoss records events about data that is being removed under a bound claim.
type dataLoss struct {
	client client.Client
	live   client.Reader
	events events.EventRecorder
	// recorded remembers the volumes with an event.
	recorded event.Last
}

// record records events for the PersistentVolume and the claim of data that is being removed
// under them. A person deleted the NodeVolume with spec.removeData while a claim is
// bound to the volume. The manager sets removeData only for volumes that no claim has.
func (r *dataLoss) record(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	pv, err := r.boundVolume(ctx, volume)
	if err != nil || pv == nil {
		return err
	}
	message := fmt.Sprintf("NodeVolume %s was deleted with spec.removeData, so that node %s removes the data of this volume: "+
		"it can't be undone; delete the claim, and restore the data from a backup to a new one", volume.Name, volume.Spec.NodeName)
	if !r.recorded.IsNew(client.ObjectKeyFromObject(volume), message) {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}
	if err := r.client.Get(ctx, key, claim); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading claim %s: %w", key, err)
	}
	r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.DataRemoved, "Removing", "%s", message)
	if claim.UID == pv.Spec.ClaimRef.UID {
		event.Unlogged(r.events).Eventf(claim, pv, corev1.EventTypeWarning, event.DataRemoved, "Removing", "%s", message)
	}
	return nil
}

// boundVolume returns the PersistentVolume that refers to a volume and has a bound claim, or
// nil. A live read confirms it, because the cache may be stale.
func (r *dataLoss) boundVolume(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*corev1.PersistentVolume, error) {
	var pv *corev1.PersistentVolume
	for _, reader := range []client.Reader{r.client, r.live} {
		var err error
		pv, err = liveread.Find(ctx, volume.Name, &corev1.PersistentVolume{}, reader)
		if err != nil || pv == nil || !isBoundTo(pv, volume) {
			return nil, wrap.Error(err, "reading volume %s", volume.Name)
		}
	}
	return pv, nil
}

// isBoundTo reports whether a claim is bound to the PersistentVolume of a volume.
func isBoundTo(pv *corev1.PersistentVolume, volume *stowagev1alpha1.NodeVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == stowagev1alpha1.LocalDriver && pv.Spec.CSI.VolumeHandle == volume.Name &&
		pv.Status.Phase == corev1.VolumeBound && pv.Spec.ClaimRef != nil && pv.DeletionTimestamp.IsZero()
}
