package nodemanager

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
)

// numbersOf sums up a pass over a pod.
func (r *Reconciler) numbersOf(pod *corev1.Pod, table mount.Table, wanted *DesiredPod, states []podstatus.Progress) metrics.Pod {
	numbers := metrics.Pod{Mounted: map[string]int{}, Pending: map[string]int{}, Claims: map[client.ObjectKey]metrics.ClaimMount{}}
	for i, volume := range wanted.Volumes {
		state := states[i]
		switch {
		case state.Done && volume.Resolved != nil:
			numbers.Mounted[volume.Resolved.Plugin.Name()]++
		case state.Err != nil:
			numbers.Pending[podstatus.ReasonOf(state.Err)]++
		default:
			numbers.Pending[metrics.Working]++
		}
		claim := podclaims.ClaimNameOf(pod, volume.Volume)
		if claim == "" || volume.Resolved == nil || volume.Resolved.IsBlock() {
			continue
		}
		path := volume.Resolved.Plugin.Path(r.Tree.VolumeDir(pod.UID, volume.Resolved.Location()))
		if table.IsMountPoint(path) {
			numbers.Claims[client.ObjectKey{Namespace: pod.Namespace, Name: claim}] = metrics.ClaimMount{Path: path, Ails: state.Err != nil}
		}
	}
	return numbers
}
