package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
)

// podVolume is one of a pod's volumes.
type podVolume struct {
	pod    *corev1.Pod
	source *corev1.Volume
}

// desiredVolume returns the volume on the node of one of a pod's volumes. If the claim is not
// bound or the PersistentVolume is missing, their next event wakes the node.
func desiredVolume(ctx context.Context, from nodeReader, s *snapshot, of podVolume) (attach.Volume, bool, error) {
	volume, attachable, err := attach.Volume{}, false, error(nil)
	switch {
	case of.source.PersistentVolumeClaim != nil || of.source.Ephemeral != nil:
		volume, attachable, err = claimedVolume(ctx, from, s, of)
	case attach.IsInline(of.source):
		volume, attachable, err = logged(ctx)(attach.OfInline(of.source, of.pod.Namespace))
	}
	if err != nil || !attachable || !volume.NeedsAttachment() {
		return volume, attachable, err
	}
	driver := &storagev1.CSIDriver{}
	known, err := find(ctx, from, client.ObjectKey{Name: volume.Driver}, driver)
	if err != nil || !known {
		return volume, err == nil, err
	}
	return volume, attach.Required(driver), nil
}

// claimedVolume returns the volume that the claim of one of a pod's volumes is bound to.
func claimedVolume(ctx context.Context, from nodeReader, s *snapshot, of podVolume) (attach.Volume, bool, error) {
	pod, source := of.pod, of.source
	key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.ClaimName(pod, source)}
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	found, err := find(ctx, from, key, claim)
	switch {
	case err != nil || !found || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return attach.Volume{}, false, err
	case source.Ephemeral != nil && !metav1.IsControlledBy(claim, pod):
		return attach.Volume{}, false, nil
	}
	found, err = find(ctx, from, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	if err != nil || !found || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return attach.Volume{}, false, err
	}
	if s.inTreeDisks && attach.IsInTreeDisk(pv) {
		return logged(ctx)(attach.OfInTreeDisk(pv, s.Node))
	}
	return logged(ctx)(attach.OfPersistentVolume(pv))
}

// logged turns a translation error into a volume that is not attached: one bad volume must
// not block the node's other volumes.
func logged(ctx context.Context) func(attach.Volume, bool, error) (attach.Volume, bool, error) {
	return func(volume attach.Volume, attachable bool, err error) (attach.Volume, bool, error) {
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("not attached", "why", err.Error())
			return attach.Volume{}, false, nil
		}
		return volume, attachable, nil
	}
}
