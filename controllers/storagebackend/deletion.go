package storagebackend

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// deletion releases deleted backends.
type deletion struct {
	client  client.Client
	live    client.Reader
	classes classes
}

// finish releases a deleted backend once nothing needs it. It deletes the class first, so that
// no new volumes come, and then waits for the volumes.
func (r deletion) finish(ctx context.Context, object *stowagev1alpha1.StorageBackend) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(object, stowagev1alpha1.BackendInUseFinalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.classes.deleteBut(ctx, object, ""); err != nil {
		return ctrl.Result{}, err
	}
	// The cache only saves live reads: a live read has to confirm that nothing needs the
	// backend.
	for _, reader := range []client.Reader{r.client, r.live} {
		user, err := findUser(ctx, reader, object)
		if user != "" || err != nil {
			return waitFor(object, user), err
		}
	}
	if snapshot, err := findSnapshot(ctx, r.live, object); snapshot != "" || err != nil {
		return waitFor(object, snapshot), err
	}
	if err := r.classes.release(ctx, r.live, object); err != nil {
		return ctrl.Result{}, err
	}
	before := object.DeepCopy()
	controllerutil.RemoveFinalizer(object, stowagev1alpha1.BackendInUseFinalizer)
	err := r.client.Patch(ctx, object, patch.Fenced(before))
	return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "removing the finalizer of StorageBackend %s", object.Name)
}

// waitFor says what a deleted backend waits for; nothing if that isn't known.
func waitFor(object *stowagev1alpha1.StorageBackend, user string) ctrl.Result {
	if user == "" {
		return ctrl.Result{}
	}
	setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, stowagev1alpha1.ReasonInUse,
		"the backend is being deleted and waits for "+user)
	return ctrl.Result{RequeueAfter: probeInterval}
}

// findUser finds what still needs a backend, and returns advice about it. That is a volume, or
// a claim for which the backend may have been called. It may also be a NodeVolume without
// either, or an attachment of an existing disk. Volumes of a CSI driver go on with its sidecars.
func findUser(ctx context.Context, reader client.Reader, object *stowagev1alpha1.StorageBackend) (string, error) {
	name := object.Name
	volumes, claims, records := &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &stowagev1alpha1.NodeVolumeList{}
	attachments := &storagev1.VolumeAttachmentList{}
	for _, list := range []client.ObjectList{volumes, claims, records, attachments} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("listing what needs StorageBackend %s: %w", name, err)
		}
	}
	for i := range volumes.Items {
		switch pv := &volumes.Items[i]; {
		case isIn(pv, object) && object.Spec.CSI == nil:
			return adviceOnVolume(pv), nil
		case isIn(pv, object) && isInUndeleteWindow(pv, object):
			return fmt.Sprintf("volume %s, which external-provisioner would remove at once: wait, or set spec.deletion.retainFor to 0s, "+
				"or the policy of the volume to Retain", pv.Name), nil
		}
	}
	for i := range claims.Items {
		if intent, err := provisioned.IntentOf(&claims.Items[i]); err == nil && intent.Backend == name {
			return adviceOnClaim(&claims.Items[i]), nil
		}
	}
	for i := range records.Items {
		if records.Items[i].Spec.Backend == name {
			return adviceOnRecord(&records.Items[i]), nil
		}
	}
	for i := range attachments.Items {
		if attachment := &attachments.Items[i]; attachintent.IsInTreeDiskBy(attachment, name) {
			return fmt.Sprintf("VolumeAttachment %s of an existing disk: delete the pods of node %s that use it", attachment.Name, attachment.Spec.NodeName), nil
		}
	}
	return "", nil
}

// isIn reports whether a volume is in a backend. A backend of another kind may have the name of a
// CSI driver that Stowage doesn't serve: that driver's volumes are not in it.
func isIn(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) bool {
	return slices.Contains(index.BackendOf(pv), object.Name) && (object.Spec.CSI != nil || backend.IsOurs(pv.Spec.CSI.Driver))
}

// isInUndeleteWindow reports whether a volume stays for a while after its claim. Only Stowage knows
// for how long.
func isInUndeleteWindow(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) bool {
	return object.Spec.Deletion.RetainFor.Duration > 0 && pv.Status.Phase == corev1.VolumeReleased && provisioned.MayDelete(pv)
}

func adviceOnVolume(pv *corev1.PersistentVolume) string {
	if provisioned.MayDelete(pv) {
		return fmt.Sprintf("volume %s: delete its claim, or set its policy to Retain to keep its data, and delete the volume", pv.Name)
	}
	return fmt.Sprintf("volume %s, whose policy keeps its data: delete its claim, and then the volume", pv.Name)
}

func adviceOnClaim(claim *corev1.PersistentVolumeClaim) string {
	key := client.ObjectKeyFromObject(claim)
	if !claim.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("claim %s: what was made for it is being removed", key)
	}
	return fmt.Sprintf("claim %s, for which storage may have been made: delete it", key)
}

func adviceOnRecord(record *stowagev1alpha1.NodeVolume) string {
	if record.Spec.RemoveData && !record.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("NodeVolume %s: the agent of node %s is to remove its data", record.Name, record.Spec.NodeName)
	}
	if named.IsVolume(record.Name) || named.IsSnapshot(record.Name) {
		return fmt.Sprintf("NodeVolume %s, which a call of a CSI socket made: have it removed by such a call", record.Name)
	}
	if record.Spec.SnapshotUID != "" {
		return fmt.Sprintf("snapshot %s: delete its VolumeSnapshot, and the VolumeSnapshotContent if that stays; a snapshot without either "+
			"is removed with NodeVolume %s: delete that and set its spec.removeData", record.Name, record.Name)
	}
	return fmt.Sprintf("NodeVolume %s, which no volume uses: delete it and set its spec.removeData to remove its data, "+
		"or take its finalizer off to keep it", record.Name)
}
