package metrics

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
)

func newNumbers(t *testing.T) (*Metrics, *prometheus.Registry, *mounttest.Fake) {
	t.Helper()
	registry, mounter := prometheus.NewPedanticRegistry(), &mounttest.Fake{}
	numbers, err := New(registry, mounter)
	if err != nil {
		t.Fatal(err)
	}
	return numbers, registry, mounter
}

func TestPodsVolumesAreCountedWhileTheyAreThere(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	pod := nodetest.PodWith()
	numbers.SetPod(pod, Pod{Mounted: map[string]int{"a": 2}, Pending: map[string]int{Working: 1}})
	numbers.SetPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-2"}}, Pod{Mounted: map[string]int{"a": 1, "b": 1}, Pending: map[string]int{"FailedMount": 2}})
	nodetest.MustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{"a": 3, "b": 1})
	nodetest.MustServe(t, registry, "stowage_node_volumes_pending", map[string]float64{Working: 1, "FailedMount": 2})
	nodetest.MustServe(t, registry, "stowage_node_pod_volumes_ready_seconds", map[string]float64{"": 0})

	for range 2 {
		numbers.SetPod(pod, Pod{Mounted: map[string]int{"a": 3}})
	}
	nodetest.MustServe(t, registry, "stowage_node_pod_volumes_ready_seconds", map[string]float64{"": 1})
	numbers.SetLeft(nodetest.SomePod, []poddir.Location{{Plugin: "a"}})
	nodetest.MustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{"a": 2, "b": 1})
	numbers.ForgetPod(nodetest.SomePod)
	numbers.ForgetPod("pod-2")
	nodetest.MustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{})
}

func TestAPodThatWasReadyBeforeHasNoReadyTime(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	pod := nodetest.PodWith()
	pod.Status.Conditions = []corev1.PodCondition{{Type: stowagev1alpha1.VolumesReadyCondition, Status: corev1.ConditionTrue}}
	numbers.SetPod(pod, Pod{})
	nodetest.MustServe(t, registry, "stowage_node_pod_volumes_ready_seconds", map[string]float64{"": 0})
}

func TestAClaimsUsageIsServedWhileItsVolumeIsMounted(t *testing.T) {
	numbers, registry, mounter := newNumbers(t)
	dir := t.TempDir()
	claims := map[client.ObjectKey]ClaimMount{{Namespace: "team-a", Name: "data"}: {Path: dir}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: nodetest.SomePod}}
	numbers.SetPod(pod, Pod{Claims: claims})
	nodetest.MustServe(t, registry, "kubelet_volume_stats_capacity_bytes", map[string]float64{})

	if err := mounter.Tmpfs(dir, mount.TmpfsOptions{}); err != nil {
		t.Fatal(err)
	}
	// The fake mounts nothing: what is asked is the file system that the directory lies on.
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("it takes room"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"capacity_bytes", "available_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used"} {
		if got := nodetest.MetricsOf(t, registry, "kubelet_volume_stats_"+name); len(got) != 1 || got["team-a data"] <= 0 {
			t.Errorf("%s is %v", name, got)
		}
	}
	nodetest.MustServe(t, registry, "kubelet_volume_stats_health_status_abnormal", map[string]float64{"team-a data": 0})
	claims[client.ObjectKey{Namespace: "team-a", Name: "data"}] = ClaimMount{Path: dir, Abnormal: true}
	nodetest.MustServe(t, registry, "kubelet_volume_stats_health_status_abnormal", map[string]float64{"team-a data": 1})
}
