package metrics

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
)

// Working is why a volume isn't mounted of which there is nothing to tell yet.
const Working = "Working"

// Pod is how far the volumes of one pod are.
type Pod struct {
	// Mounted counts volumes by type, and pending by why they aren't mounted.
	Mounted, Pending map[string]int
	Claims           map[client.ObjectKey]ClaimMount
}

// ClaimMount is the volume of a claim that a pod has mounted.
type ClaimMount struct {
	Path string
	// ails: something is wrong with it, although it is mounted.
	Ails bool
}

// podTime is what a pod's latency is made of.
type podTime struct {
	seen  time.Time
	ready bool
}

// SetPod notes how far the volumes of a pod are. A pod that had all of them before this
// program began is no measure of how long that takes.
func (n *Metrics) SetPod(pod *corev1.Pod, numbers Pod) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod.UID] = numbers
	of, known := n.times[pod.UID]
	if !known {
		of = podTime{seen: time.Now(), ready: podclaims.HasVolumes(pod)}
	}
	if !of.ready && len(numbers.Pending) == 0 {
		of.ready = true
		n.podReady.Observe(time.Since(of.seen).Seconds())
	}
	n.times[pod.UID] = of
}

// SetLeft notes what is left of a pod.
func (n *Metrics) SetLeft(pod types.UID, left []poddir.Location) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod] = mountedOf(left)
	delete(n.times, pod)
}

// ForgetPod drops the numbers of a pod of which nothing is left.
func (n *Metrics) ForgetPod(pod types.UID) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, pod)
	delete(n.times, pod)
}

// sums adds up all pods' volumes.
func (n *Metrics) sums() Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	sums := Pod{Mounted: map[string]int{}, Pending: map[string]int{}, Claims: map[client.ObjectKey]ClaimMount{}}
	for _, pod := range n.pods {
		for volumeType, count := range pod.Mounted {
			sums.Mounted[volumeType] += count
		}
		for reason, count := range pod.Pending {
			sums.Pending[reason] += count
		}
		maps.Copy(sums.Claims, pod.Claims)
	}
	return sums
}

// mountedOf is the numbers of a pod whose volumes are being taken away.
func mountedOf(left []poddir.Location) Pod {
	mounted := map[string]int{}
	for _, at := range left {
		mounted[at.Plugin]++
	}
	return Pod{Mounted: mounted}
}
