package volumegroupsnapshot

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// kind is that of what the package reconciles.
const kind = "VolumeGroupSnapshot"

// newContent is the content that is made for a VolumeGroupSnapshot of volumes. All must be of the class's driver: another one
// may have a volume with the same handle.
func newContent(group *groupsnapshotv1.VolumeGroupSnapshot, class *groupsnapshotv1.VolumeGroupSnapshotClass, volumes []*corev1.PersistentVolume) (*groupsnapshotv1.VolumeGroupSnapshotContent, error) {
	var handles []string
	for _, pv := range volumes {
		if pv.Spec.CSI.Driver != class.Driver {
			return nil, snapshots.NewProblem(event.GroupSnapshotContentCreationFailed,
				"VolumeGroupSnapshotClass %s is of driver %.200q, and volume %s of %.200q: select claims of that driver alone", class.Name, class.Driver, pv.Name, pv.Spec.CSI.Driver)
		}
		handles = append(handles, pv.Spec.CSI.VolumeHandle)
	}
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: snapshots.GroupContentName(group.UID), Finalizers: []string{snapshots.GroupContentProtection}},
		Spec: groupsnapshotv1.VolumeGroupSnapshotContentSpec{
			VolumeGroupSnapshotRef: corev1.ObjectReference{
				APIVersion: groupsnapshotv1.SchemeGroupVersion.String(), Kind: kind,
				Namespace: group.Namespace, Name: group.Name, UID: group.UID, ResourceVersion: group.ResourceVersion,
			},
			Source:         groupsnapshotv1.VolumeGroupSnapshotContentSource{VolumeHandles: handles},
			DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, VolumeGroupSnapshotClassName: &class.Name,
		},
	}
	of := snapshots.Class{Kind: "VolumeGroupSnapshotClass", Name: class.Name, Parameters: class.Parameters}
	secret, err := snapshots.DeletionSecret(of, "group-snapshotter", "volumegroupsnapshot", content.Name, content.Spec.VolumeGroupSnapshotRef)
	if err != nil {
		return nil, snapshots.NewProblem(event.GroupSnapshotContentCreationFailed, "%v", err)
	}
	if secret.Name != "" {
		content.Annotations = map[string]string{snapshots.GroupDeletionSecretName: secret.Name, snapshots.GroupDeletionSecretNamespace: secret.Namespace}
	}
	return content, nil
}

// bindable is a content as it is tied and ended.
func bindable(content *groupsnapshotv1.VolumeGroupSnapshotContent) snapshotbinding.Content {
	spec := &content.Spec
	return snapshotbinding.Content{
		Object: content, UID: &spec.VolumeGroupSnapshotRef.UID, Class: &spec.VolumeGroupSnapshotClassName, Policy: &spec.DeletionPolicy,
		Protection: snapshots.GroupContentProtection, BeingDeleted: snapshots.GroupBeingDeleted,
	}
}

// isStatic reports whether a VolumeGroupSnapshot names a content that a person made.
func isStatic(group *groupsnapshotv1.VolumeGroupSnapshot) bool {
	return group.Spec.Source.VolumeGroupSnapshotContentName != nil
}

// contentName is the name of the content that a VolumeGroupSnapshot has, or gets.
func contentName(group *groupsnapshotv1.VolumeGroupSnapshot) string {
	return ptr.Deref(group.Spec.Source.VolumeGroupSnapshotContentName, snapshots.GroupContentName(group.UID))
}

// boundContent is the name of the content in a status; "" for none.
func boundContent(group *groupsnapshotv1.VolumeGroupSnapshot) string {
	if group.Status == nil {
		return ""
	}
	return ptr.Deref(group.Status.BoundVolumeGroupSnapshotContentName, "")
}

// readContent reads the content of a VolumeGroupSnapshot; nil if there is none. It may be made, and not be in the status yet.
func readContent(ctx context.Context, from client.Reader, group *groupsnapshotv1.VolumeGroupSnapshot) (*groupsnapshotv1.VolumeGroupSnapshotContent, error) {
	name, content := contentName(group), &groupsnapshotv1.VolumeGroupSnapshotContent{}
	err := from.Get(ctx, client.ObjectKey{Name: name}, content)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading VolumeGroupSnapshotContent %s: %w", name, err)
	}
	return content, nil
}

// check returns why a content isn't that of a VolumeGroupSnapshot.
func check(group *groupsnapshotv1.VolumeGroupSnapshot, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	pair := snapshots.Pair{
		Kind: kind, Of: group, Bound: boundContent(group), Static: isStatic(group), Content: content.Name, Ref: content.Spec.VolumeGroupSnapshotRef,
		Handle: "groupSnapshotHandles", HasHandle: content.Spec.Source.GroupSnapshotHandles != nil,
		Volume: "volumeHandles", HasVolume: len(content.Spec.Source.VolumeHandles) > 0,
		Reasons: snapshots.Reasons{
			Mismatch: event.GroupSnapshotContentMismatch, ContentMisbound: event.GroupSnapshotContentMisbound, Misbound: event.GroupSnapshotMisbound,
		},
	}
	return pair.Check()
}

// isComplete reports whether a VolumeGroupSnapshot is bound and ready.
func isComplete(group *groupsnapshotv1.VolumeGroupSnapshot) bool {
	return snapshots.IsGroupReady(group) && boundContent(group) != ""
}

// isTied reports whether a VolumeGroupSnapshot and its content have all that bind gives them.
func isTied(group *groupsnapshotv1.VolumeGroupSnapshot, content *groupsnapshotv1.VolumeGroupSnapshotContent) bool {
	return check(group, content) == nil && content.Spec.VolumeGroupSnapshotRef.UID == group.UID &&
		controllerutil.ContainsFinalizer(group, snapshots.GroupBoundProtection) &&
		(!content.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(content, snapshots.GroupContentProtection))
}
