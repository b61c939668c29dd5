package nodemanager

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
)

// working is why a volume isn't mounted of which there is nothing to tell yet.
const working = "Working"

// podNumbers is how far the volumes of one pod are.
type podNumbers struct {
	// mounted counts volumes by type, and pending by why they aren't mounted.
	mounted, pending map[string]int
	claims           map[client.ObjectKey]claimMount
}

// claimMount is the volume of a claim that a pod has mounted.
type claimMount struct {
	path string
	// ails: something is wrong with it, although it is mounted.
	ails bool
}

// podTime is what a pod's latency is made of.
type podTime struct {
	seen  time.Time
	ready bool
}

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

// mountedOf is the numbers of a pod whose volumes are being taken away.
func mountedOf(left []Location) podNumbers {
	mounted := map[string]int{}
	for _, at := range left {
		mounted[at.Plugin]++
	}
	return podNumbers{mounted: mounted}
}

// setPod notes how far the volumes of a pod are. A pod that had all of them before this
// program began is no measure of how long that takes.
func (n *Numbers) setPod(pod *corev1.Pod, numbers podNumbers) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod.UID] = numbers
	of, known := n.times[pod.UID]
	if !known {
		of = podTime{seen: time.Now(), ready: hasVolumes(pod)}
	}
	if !of.ready && len(numbers.pending) == 0 {
		of.ready = true
		n.podReady.Observe(time.Since(of.seen).Seconds())
	}
	n.times[pod.UID] = of
}

// setLeft notes what is left of a pod.
func (n *Numbers) setLeft(pod types.UID, left []Location) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod] = mountedOf(left)
	delete(n.times, pod)
}

// forgetPod drops the numbers of a pod of which nothing is left.
func (n *Numbers) forgetPod(pod types.UID) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, pod)
	delete(n.times, pod)
}

// sums adds up all pods' volumes.
func (n *Numbers) sums() podNumbers {
	n.mu.Lock()
	defer n.mu.Unlock()
	sums := podNumbers{mounted: map[string]int{}, pending: map[string]int{}, claims: map[client.ObjectKey]claimMount{}}
	for _, pod := range n.pods {
		for volumeType, count := range pod.mounted {
			sums.mounted[volumeType] += count
		}
		for reason, count := range pod.pending {
			sums.pending[reason] += count
		}
		maps.Copy(sums.claims, pod.claims)
	}
	return sums
}
