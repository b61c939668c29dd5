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

// SetPod sets how far the volumes of a pod are. A pod that had all of them before this process
// started has no ready time.
func (n *Metrics) SetPod(pod *corev1.Pod, now Pod) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod.UID] = now
	of, known := n.times[pod.UID]
	if !known {
		of = podTime{seen: time.Now(), ready: podclaims.HasVolumes(pod)}
	}
	if !of.ready && len(now.Pending) == 0 {
		of.ready = true
		n.podReady.Observe(time.Since(of.seen).Seconds())
	}
	n.times[pod.UID] = of
}

// SetLeft sets which volumes of a pod are still to be unmounted.
func (n *Metrics) SetLeft(pod types.UID, left []poddir.Location) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod] = mountedOf(left)
	delete(n.times, pod)
}

// ForgetPod drops the metrics of a pod of which nothing is left.
func (n *Metrics) ForgetPod(pod types.UID) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, pod)
	delete(n.times, pod)
}

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

// mountedOf is a pod whose volumes are being unmounted.
func mountedOf(left []poddir.Location) Pod {
	mounted := map[string]int{}
	for _, at := range left {
		mounted[at.Plugin]++
	}
	return Pod{Mounted: mounted}
}
