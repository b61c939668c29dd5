package nodemanager

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// mountedOf is the numbers of a pod whose volumes are being taken away.
func mountedOf(left []Location) podNumbers {
	mounted := map[string]int{}
	for _, at := range left {
		mounted[at.Plugin]++
	}
	return podNumbers{mounted: mounted}
}
