// Package nodetest has what tests of the node manager share: pods, claims and operations that
// end when a test lets them.
package nodetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
)

// SomePod is the UID of the pod in most tests.
const SomePod = types.UID("pod-1")

// Gate is work that ends when the test sends its result.
type Gate chan error

// Work waits for the result, and returns it.
func (g Gate) Work(context.Context) error { return <-g }

// Eventually waits until something is so, at most 20 seconds.
func Eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !isSo(); {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be that " + what)
		}
		<-time.After(time.Millisecond)
	}
}

// ClaimVolume is a pod's volume of claim data.
func ClaimVolume(name string, readOnly bool) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: readOnly},
	}}
}

// PodWith is a pod with these volumes.
func PodWith(sources ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: SomePod}, Spec: corev1.PodSpec{Volumes: sources}}
}

// Bound is a claim and its volume as a binder leaves them.
func Bound() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
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

// TableOf is a mount table with these mount points.
func TableOf(paths ...string) mount.Table {
	var table mount.Table
	for _, path := range paths {
		table = append(table, mount.Point{Path: path})
	}
	return table
}

// MetricsOf is the metrics of a name: their values, or how many were observed, by their
// labels' values.
func MetricsOf(t testing.TB, registry *prometheus.Registry, name string) map[string]float64 {
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

// MustServe makes sure that the metrics of a name are these.
func MustServe(t *testing.T, registry *prometheus.Registry, name string, want map[string]float64) {
	t.Helper()
	if got := MetricsOf(t, registry, name); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// PodOnNode is a pod with an emptyDir on node n1.
func PodOnNode(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid},
		Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}},
	}
}

// Deleting makes a pod one that is being deleted.
func Deleting(pod *corev1.Pod, running bool) *corev1.Pod {
	pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/kept"}
	if running {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	return pod
}
