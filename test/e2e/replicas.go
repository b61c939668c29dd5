package main

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	most, few  = 5, 2
	replicated = "replica"
)

// replicas: each pod of a StatefulSet has a volume of its own, and finds it again.
func replicas(s *scene) {
	set := s.statefulSet()
	s.Do("a StatefulSet of five runs", func() error {
		return errors.Join(s.create(set), s.soon(func() error { return s.hasReplicas(set, most) }))
	})
	s.Do("each writes its name", func() error {
		return s.ofReplicas(most, func(pod string) error { return s.does(pod, "hostname >>/data/names && sync") })
	})
	s.Do("it is scaled down to two", func() error { return s.scale(set, few) })
	s.Do("all claims stay bound", func() error {
		return s.ofReplicas(most, func(pod string) error {
			claim := s.claim(images, "16Mi")
			claim.Name = data + "-" + pod
			_, err := s.volume(claim)
			return err
		})
	})
	s.Do("it is scaled up again", func() error { return s.scale(set, most) })
	s.Do("each finds its name, once", func() error {
		return s.ofReplicas(most, func(pod string) error { return s.says(pod, "cat /data/names", pod) })
	})
}

func (s *scene) statefulSet() *appsv1.StatefulSet {
	labels, count := map[string]string{"set": replicated}, int32(most)
	pod := s.pod("", func(spec *corev1.PodSpec) {
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: data, MountPath: dataPath}}
	})
	pod.Namespace, pod.Labels = "", labels
	claim := s.claim(images, "16Mi")
	claim.Namespace = ""
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: replicated},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
			Template:             corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim},
		},
	}
}

// scale waits until there are so many.
func (s *scene) scale(set *appsv1.StatefulSet, count int32) error {
	if err := s.change(set, func() { set.Spec.Replicas = &count }); err != nil {
		return err
	}
	return s.soon(func() error { return s.hasReplicas(set, count) })
}

func (s *scene) hasReplicas(set *appsv1.StatefulSet, count int32) error {
	err := s.get(set)
	if status := set.Status; err == nil && (status.ObservedGeneration < set.Generation || status.Replicas != count || status.ReadyReplicas != count) {
		err = fmt.Errorf("of %d there are %d, %d of them Ready", count, status.Replicas, status.ReadyReplicas)
	}
	return err
}

// ofReplicas does something with each of the first pods.
func (s *scene) ofReplicas(count int, do func(pod string) error) error {
	var problems []error
	for i := range count {
		problems = append(problems, do(fmt.Sprintf("%s-%d", replicated, i)))
	}
	return errors.Join(problems...)
}
