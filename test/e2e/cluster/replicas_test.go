package cluster_test

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	most, few  = 5, 2
	replicated = "replica"
)

// replicas: each pod of a StatefulSet has a volume of its own, and finds it again.
func replicas(n *namespace) {
	set := n.statefulSet()
	scenario.Step("a StatefulSet of five runs", func() error {
		return errors.Join(n.create(set), n.soon(func() error { return n.hasReplicas(set, most) }))
	})
	scenario.Step("each writes its name", func() error {
		return n.ofReplicas(most, func(pod string) error { return n.does(pod, "hostname >>/data/names && sync") })
	})
	scenario.Step("it is scaled down to two", func() error { return n.scale(set, few) })
	scenario.Step("all claims stay bound", func() error {
		return n.ofReplicas(most, func(pod string) error {
			claim := n.claim(images, "16Mi")
			claim.Name = data + "-" + pod
			_, err := n.volume(claim)
			return err
		})
	})
	scenario.Step("it is scaled up again", func() error { return n.scale(set, most) })
	scenario.Step("each finds its name, once", func() error {
		return n.ofReplicas(most, func(pod string) error { return n.says(pod, "cat /data/names", pod) })
	})
}

func (n *namespace) statefulSet() *appsv1.StatefulSet {
	labels, count := map[string]string{"set": replicated}, int32(most)
	pod := n.pod("", func(spec *corev1.PodSpec) {
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: data, MountPath: dataPath}}
	})
	pod.Namespace, pod.Labels = "", labels
	claim := n.claim(images, "16Mi")
	claim.Namespace = ""
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: replicated},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
			Template:             corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim},
		},
	}
}

// scale waits until there are so many.
func (n *namespace) scale(set *appsv1.StatefulSet, count int32) error {
	if err := n.change(set, func() { set.Spec.Replicas = &count }); err != nil {
		return err
	}
	return n.soon(func() error { return n.hasReplicas(set, count) })
}

func (n *namespace) hasReplicas(set *appsv1.StatefulSet, count int32) error {
	err := n.get(set)
	if status := set.Status; err == nil && (status.ObservedGeneration < set.Generation || status.Replicas != count || status.ReadyReplicas != count) {
		err = fmt.Errorf("of %d there are %d, %d of them Ready", count, status.Replicas, status.ReadyReplicas)
	}
	return err
}

// ofReplicas does something with each of the first pods.
func (n *namespace) ofReplicas(count int, do func(pod string) error) error {
	var problems []error
	for i := range count {
		problems = append(problems, do(fmt.Sprintf("%s-%d", replicated, i)))
	}
	return errors.Join(problems...)
}
