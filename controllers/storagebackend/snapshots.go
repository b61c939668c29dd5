package storagebackend

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// snapshotCRDs is where the CRDs of snapshots are.
const snapshotCRDs = "https://github.com/kubernetes-csi/external-snapshotter"

// Missing returns why VolumeSnapshots are not served; "" if they are. Known is false until that was found out.
type Missing func() (why string, known bool)

// report says on a backend whether VolumeSnapshots are served. Volumes don't need them, so Ready doesn't either.
func (missing Missing) report(object *stowagev1alpha1.StorageBackend) {
	switch why, known := missing(); {
	case !known:
	case why == "":
		setCondition(object, stowagev1alpha1.SnapshotsServedCondition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "")
	default:
		setCondition(object, stowagev1alpha1.SnapshotsServedCondition, metav1.ConditionFalse, stowagev1alpha1.ReasonCRDsMissing,
			why+": volumes have no snapshots until they are, see docs/operate/snapshots.md and "+snapshotCRDs)
	}
}

// findSnapshot finds a snapshot that a backend has, live, and returns advice about it. The label that names one of
// Stowage's own drivers' comes before the first call. Of a CSI driver's, only those in their undelete windows count: its
// csi-snapshotter goes on with the others. A cluster may have no snapshots at all.
func findSnapshot(ctx context.Context, live client.Reader, object *stowagev1alpha1.StorageBackend) (string, error) {
	labels := client.MatchingLabels{stowagev1alpha1.BackendLabel: object.Name}
	if object.Spec.CSI != nil {
		labels = client.MatchingLabels{stowagev1alpha1.UndeletableLabel: string(object.UID)}
	}
	contents := &metav1.PartialObjectMetadataList{}
	contents.SetGroupVersionKind(snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotContentList"))
	err := live.List(ctx, contents, labels, client.Limit(1))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", wrap.Error(err, "listing the snapshots of StorageBackend %s", object.Name)
	case len(contents.Items) == 0:
		return "", nil
	}
	content := &contents.Items[0]
	if content.Labels[stowagev1alpha1.UndeletableLabel] != "" {
		return fmt.Sprintf("VolumeSnapshotContent %s, in its undelete window: wait, or delete it, and its snapshot with it", content.Name), nil
	}
	return fmt.Sprintf("VolumeSnapshotContent %s: delete its VolumeSnapshot, and then the content if its policy keeps the snapshot", content.Name), nil
}
