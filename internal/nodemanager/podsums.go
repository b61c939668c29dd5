package nodemanager

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
)

// numbersOf sums up a pass over a pod.
func (r *Reconciler) numbersOf(pod *corev1.Pod, table mount.Table, wanted *DesiredPod, states []progress) podNumbers {
	numbers := podNumbers{mounted: map[string]int{}, pending: map[string]int{}, claims: map[client.ObjectKey]claimMount{}}
	for i, volume := range wanted.Volumes {
		state := states[i]
		switch {
		case state.done && volume.Resolved != nil:
			numbers.mounted[volume.Resolved.Plugin.Name()]++
		case state.err != nil:
			numbers.pending[reasonOf(state.err)]++
		default:
			numbers.pending[working]++
		}
		claim := claimNameOf(pod, volume.Volume)
		if claim == "" || volume.Resolved == nil || volume.Resolved.IsBlock() {
			continue
		}
		path := volume.Resolved.Plugin.Path(r.Tree.VolumeDir(pod.UID, volume.Resolved.Location()))
		if table.IsMountPoint(path) {
			numbers.claims[client.ObjectKey{Namespace: pod.Namespace, Name: claim}] = claimMount{path: path, ails: state.err != nil}
		}
	}
	return numbers
}
