package nodemanager

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

const somePod = types.UID("pod-1")

// gate is work that ends when it is told to.
type gate chan error

func (g gate) work(context.Context) error { return <-g }

func eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !isSo(); {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be that " + what)
		}
		<-time.After(time.Millisecond)
	}
}

func claimVolume(name string, readOnly bool) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: readOnly},
	}}
}

func podWith(sources ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: somePod}, Spec: corev1.PodSpec{Volumes: sources}}
}

// bound is a claim and its volume as a binder leaves them.
func bound() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "claim-1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "claim-1"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/pv"}},
		},
	}
	return claim, volume
}

func tableOf(paths ...string) mount.Table {
	var table mount.Table
	for _, path := range paths {
		table = append(table, mount.Point{Path: path})
	}
	return table
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

func podOnNode(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid},
		Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}},
	}
}

func deleting(pod *corev1.Pod, running bool) *corev1.Pod {
	pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/kept"}
	if running {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	return pod
}
