package nodemanager

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
)

func newNumbers(t *testing.T) (*Numbers, *prometheus.Registry, *mounttest.Fake) {
	t.Helper()
	registry, mounter := prometheus.NewPedanticRegistry(), &mounttest.Fake{}
	numbers, err := NewNumbers(registry, mounter)
	if err != nil {
		t.Fatal(err)
	}
	return numbers, registry, mounter
}

func TestPodsVolumesAreCountedWhileTheyAreThere(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	pod := podWith()
	numbers.setPod(pod, podNumbers{mounted: map[string]int{"a": 2}, pending: map[string]int{working: 1}})
	numbers.setPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-2"}}, podNumbers{mounted: map[string]int{"a": 1, "b": 1}, pending: map[string]int{"FailedMount": 2}})
	mustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{"a": 3, "b": 1})
	mustServe(t, registry, "stowage_node_volumes_pending", map[string]float64{working: 1, "FailedMount": 2})
	mustServe(t, registry, "stowage_node_pod_volumes_ready_seconds", map[string]float64{"": 0})

	for range 2 {
		numbers.setPod(pod, podNumbers{mounted: map[string]int{"a": 3}})
	}
	mustServe(t, registry, "stowage_node_pod_volumes_ready_seconds", map[string]float64{"": 1})
	numbers.setLeft(somePod, []Location{{Plugin: "a"}})
	mustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{"a": 2, "b": 1})
	numbers.forgetPod(somePod)
	numbers.forgetPod("pod-2")
	mustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{})
}

func TestAPodThatHadItsVolumesBeforeIsNoMeasureOfHowLongThatTakes(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	pod := podWith()
	pod.Status.Conditions = []corev1.PodCondition{{Type: stowagev1alpha1.VolumesReadyCondition, Status: corev1.ConditionTrue}}
	numbers.setPod(pod, podNumbers{})
	mustServe(t, registry, "stowage_node_pod_volumes_ready_seconds", map[string]float64{"": 0})
}

func TestAClaimsUsageIsServedWhileItsVolumeIsMounted(t *testing.T) {
	numbers, registry, mounter := newNumbers(t)
	dir := t.TempDir()
	claims := map[client.ObjectKey]claimMount{{Namespace: "team-a", Name: "data"}: {path: dir}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: somePod}}
	numbers.setPod(pod, podNumbers{claims: claims})
	mustServe(t, registry, "kubelet_volume_stats_capacity_bytes", map[string]float64{})

	if err := mounter.Tmpfs(dir, mount.TmpfsOptions{}); err != nil {
		t.Fatal(err)
	}
	// The fake mounts nothing: what is asked is the file system that the directory lies on.
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("it takes room"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"capacity_bytes", "available_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used"} {
		if got := metricsOf(t, registry, "kubelet_volume_stats_"+name); len(got) != 1 || got["team-a data"] <= 0 {
			t.Errorf("%s is %v", name, got)
		}
	}
	mustServe(t, registry, "kubelet_volume_stats_health_status_abnormal", map[string]float64{"team-a data": 0})
	claims[client.ObjectKey{Namespace: "team-a", Name: "data"}] = claimMount{path: dir, ails: true}
	mustServe(t, registry, "kubelet_volume_stats_health_status_abnormal", map[string]float64{"team-a data": 1})
}
