package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
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

// metricsOf is the metrics of a name: their values, or how many were observed, by their
// labels' values.
func metricsOf(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			key := strings.Join(labels, " ")
			found[key] = metric.GetGauge().GetValue()
			if histogram := metric.GetHistogram(); histogram != nil {
				found[key] = float64(histogram.GetSampleCount())
			}
		}
	}
	return found
}

func mustServe(t *testing.T, registry *prometheus.Registry, name string, want map[string]float64) {
	t.Helper()
	if got := metricsOf(t, registry, name); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

func TestOperationsAreCountedByHowTheyEnded(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), numbers)
	task := Task{Kind: Mounting, Type: "kubernetes.io/nfs", Dir: "dir", Pod: somePod}
	hangs := make(gate)
	operations.Do(t.Context(), task, hangs.work)

	mustServe(t, registry, "stowage_node_operations_running", map[string]float64{"mount kubernetes.io/nfs": 1})
	if oldest := metricsOf(t, registry, "stowage_node_operation_oldest_seconds"); oldest["mount kubernetes.io/nfs"] <= 0 {
		t.Errorf("nothing tells for how long it has been running: %v", oldest)
	}
	hangs <- nil
	operations.Wait()
	for _, err := range []error{errors.New("broken"), remote.ErrSilent, volumes.ErrGone, volumes.ErrNotSupported} {
		task.Dir = err.Error()
		operations.Do(t.Context(), task, func(context.Context) error { return err })
	}
	task.Dir, task.Pod = "cancelled", "pod-2"
	operations.Do(t.Context(), task, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	operations.Cancel("pod-2")
	operations.Wait()

	want := map[string]float64{}
	for _, outcome := range []string{outcomeOK, outcomeFailed, outcomeSilent, outcomeGone, outcomeNotSupported, outcomeCancelled} {
		want["mount "+outcome+" kubernetes.io/nfs"] = 1
	}
	mustServe(t, registry, "stowage_node_operation_seconds", want)
	mustServe(t, registry, "stowage_node_operations_running", map[string]float64{})
}

func TestWhatWaitsForItsTurnIsCounted(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	c := newCrowd(t)
	c.numbers = numbers
	c.ask(t, "nfs", lanePlaces+3)
	mustServe(t, registry, "stowage_node_operations_queued", map[string]float64{"nfs": 3})
	c.Cancel(somePod)
	mustServe(t, registry, "stowage_node_operations_queued", map[string]float64{"nfs": 0})
}

func TestPodsVolumesAreCountedWhileTheyAreThere(t *testing.T) {
	numbers, registry, _ := newNumbers(t)
	pod := podOnNode(somePod)
	numbers.setPod(pod, podNumbers{mounted: map[string]int{"a": 2}, pending: map[string]int{working: 1}})
	numbers.setPod(podOnNode("pod-2"), podNumbers{mounted: map[string]int{"a": 1, "b": 1}, pending: map[string]int{failedMount: 2}})
	mustServe(t, registry, "stowage_node_volumes_mounted", map[string]float64{"a": 3, "b": 1})
	mustServe(t, registry, "stowage_node_volumes_pending", map[string]float64{working: 1, failedMount: 2})
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
	pod := podOnNode(somePod)
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
