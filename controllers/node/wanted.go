package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
)

// lookAtPods finds the volumes that the node's pods want.
func (r *Reconciler) lookAtPods(ctx context.Context, from nodeSource, seen *nodeView) error {
	pods, err := from.podsOn(ctx, seen.Name)
	if err != nil {
		return fmt.Errorf("listing the pods of node %s: %w", seen.Name, err)
	}
	for i := range pods {
		if !attach.NeedsVolumes(&pods[i], seen.Node) {
			continue
		}
		for j := range pods[i].Spec.Volumes {
			volume, attachable, err := wantedVolume(ctx, from, seen, podVolume{&pods[i], &pods[i].Spec.Volumes[j]})
			if err != nil {
				return err
			}
			if attachable {
				seen.want(volume, &pods[i])
			}
		}
	}
	return nil
}

func (s *nodeView) want(volume attach.Volume, pod *corev1.Pod) {
	if _, known := s.users[volume.Name]; !known {
		s.Desired = append(s.Desired, volume)
	}
	s.users[volume.Name] = append(s.users[volume.Name], pod)
}

// podVolume is one of a pod's volumes.
type podVolume struct {
	pod    *corev1.Pod
	source *corev1.Volume
}

// wantedVolume returns the volume on the node of one of a pod's volumes. If the claim is not
// bound or the PersistentVolume is missing, their next event wakes the node.
func wantedVolume(ctx context.Context, from nodeSource, seen *nodeView, asked podVolume) (attach.Volume, bool, error) {
	volume, attachable, err := attach.Volume{}, false, error(nil)
	switch {
	case asked.source.PersistentVolumeClaim != nil || asked.source.Ephemeral != nil:
		volume, attachable, err = claimedVolume(ctx, from, seen, asked)
	case attach.IsInline(asked.source):
		volume, attachable, err = translated(ctx)(attach.OfInline(asked.source, asked.pod.Namespace))
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
func claimedVolume(ctx context.Context, from nodeSource, seen *nodeView, asked podVolume) (attach.Volume, bool, error) {
	pod, source := asked.pod, asked.source
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
	if seen.existing && attach.IsInTreeDisk(pv) {
		return translated(ctx)(attach.OfInTreeDisk(pv, seen.Node))
	}
	return translated(ctx)(attach.OfPersistentVolume(pv))
}

// translated turns a translation error into a volume that is not attached: one bad volume must
// not block the node's other volumes.
func translated(ctx context.Context) func(attach.Volume, bool, error) (attach.Volume, bool, error) {
	return func(volume attach.Volume, attachable bool, err error) (attach.Volume, bool, error) {
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("not attached", "why", err.Error())
			return attach.Volume{}, false, nil
		}
		return volume, attachable, nil
	}
}
