package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	shownObjects = 17
	shownLabel   = "bench.stowage.dev/shown"
)

type podSet struct {
	name    string
	pods    int
	volumes func(pod int) []corev1.Volume
	claims  bool
}

var (
	podSets = []podSet{
		{name: "one-pod", pods: 1, volumes: func(int) []corev1.Volume { return manyVolumes(50) }},
		{name: "many-pods", pods: 100, claims: true, volumes: func(pod int) []corev1.Volume {
			return fixture.Pod("", "", claimName(pod)).Spec.Volumes
		}},
	}
	// fullNode is as many pods as a kubelet takes, with a few volumes each.
	fullNode = podSet{name: "idle", pods: 110, volumes: func(int) []corev1.Volume { return manyVolumes(5) }}
	// first is a pod that shows that a program mounts.
	first = podSet{name: canary, pods: 1, volumes: func(int) []corev1.Volume { return manyVolumes(3)[2:] }}
)

func (s podSet) pod(i int) *corev1.Pod {
	pod := fixture.Pod(fmt.Sprintf("%s-%05d", s.name, i), mounterNode)
	pod.Spec.Volumes = s.volumes(i)
	// A kubelet has nothing to pull, and mounts only what containers see.
	main := &pod.Spec.Containers[0]
	main.ImagePullPolicy = corev1.PullNever
	for _, volume := range pod.Spec.Volumes {
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: "/" + volume.Name})
	}
	return pod
}

func manyVolumes(n int) []corev1.Volume {
	volumes := make([]corev1.Volume, n)
	for i := range volumes {
		volumes[i].Name = fmt.Sprintf("volume-%02d", i)
		switch i % 3 {
		case 0:
			volumes[i].ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: shownName(i / 3)}}
		case 1:
			volumes[i].Secret = &corev1.SecretVolumeSource{SecretName: shownName(i / 3)}
		default:
			volumes[i].EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
	return volumes
}

func shownName(i int) string { return fmt.Sprintf("shown-%02d", i) }

func (b *testbed) preparePods(set podSet) error {
	if set.claims {
		return inParallel(b.ctx, set.pods, b.boundFolder)
	}
	return inParallel(b.ctx, shownObjects, func(i int) error {
		meta := metav1.ObjectMeta{Namespace: fixture.Namespace, Name: shownName(i), Labels: map[string]string{shownLabel: "yes"}}
		for _, object := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"settings": "as they are"}},
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("example")}},
		} {
			if err := b.client.Create(b.ctx, object); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("creating what volumes show: %w", err)
			}
		}
		return nil
	})
}

func (b *testbed) clearShown() error {
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		if err := b.client.DeleteAllOf(b.ctx, kind, client.InNamespace(fixture.Namespace), client.HasLabels{shownLabel}); err != nil {
			return fmt.Errorf("removing what volumes showed: %w", err)
		}
	}
	return nil
}

func (b *testbed) boundFolder(i int) error {
	folder := filepath.Join(b.dir, "data", volumeName(i))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return b.createBound(i, func(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
		pv := fixture.Volume(volumeName(i), fixture.OfClass(class), fixture.OnNode(mounterNode))
		pv.Spec.ClaimRef = referenceTo(claim)
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}}
		return pv
	})
}

type podTimes struct {
	// came and left are when each pod was seen first, and seen to be deleted.
	came, left map[string]time.Time
	// had and went are how long after that it had its volumes, and was gone.
	had, went map[string]time.Duration
	// first is the first event, and last the last pod that had its volumes, or was gone.
	first, last time.Time
}

func newPodTimes() *podTimes {
	return &podTimes{
		came: map[string]time.Time{}, left: map[string]time.Time{},
		had: map[string]time.Duration{}, went: map[string]time.Duration{},
	}
}

func (t *podTimes) see(event watch.Event, now time.Time) change {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return nothing
	}
	if t.first.IsZero() {
		t.first = now
	}
	if _, known := t.came[pod.Name]; !known {
		t.came[pod.Name] = now
	}
	if _, known := t.left[pod.Name]; !known && pod.DeletionTimestamp != nil {
		t.left[pod.Name] = now
	}
	if _, known := t.had[pod.Name]; !known && hasVolumes(pod) && pod.DeletionTimestamp == nil {
		t.had[pod.Name], t.last = now.Sub(t.came[pod.Name]), now
	}
	if event.Type == watch.Deleted {
		t.went[pod.Name], t.last = now.Sub(t.left[pod.Name]), now
	}
	return progress
}

// hasVolumes reports whether a program says that all volumes are there. A stock kubelet says so with its next step, the sandbox.
func hasVolumes(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		isReady := condition.Type == stowagev1alpha1.VolumesReadyCondition || condition.Type == corev1.PodReadyToStartContainers
		return isReady && condition.Status == corev1.ConditionTrue
	})
}
