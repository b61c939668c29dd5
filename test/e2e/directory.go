package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// directory: a directory on a node's disk is made for a claim, and goes with it.
func directory(s *scene) {
	claim := s.claim(directories, "1Gi")
	writer := s.pod("writer", with(data))
	s.Do("a claim waits until the scheduler has placed a pod, which runs", func() error { return s.launch(claim, writer) })
	s.Do("its volume is a directory on the pod's node", func() error { return s.isDirectory(claim, writer) })
	s.Do("the pod writes", func() error { return s.does(writer.Name, "echo hello >/data/greeting && sync") })
	s.Do("it goes", func() error { return s.remove(writer) })
	reader := s.pod("reader", with(data))
	s.Do("another one comes to where the volume is", func() error {
		if err := s.launch(reader); err != nil {
			return err
		}
		return isOn(writer.Spec.NodeName, reader)
	})
	s.Do("and reads", func() error { return s.says(reader.Name, "cat /data/greeting", "hello") })
}

func (s *scene) isDirectory(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	volume, err := s.volume(claim)
	if err != nil {
		return err
	}
	local := &stowagev1alpha1.LocalVolume{}
	local.Name = volume.Spec.CSI.VolumeHandle
	if err := s.get(local); err != nil {
		return err
	}
	if local.Spec.NodeName != pod.Spec.NodeName || local.Spec.Layout != stowagev1alpha1.LayoutDirectory {
		return fmt.Errorf("the pod is on %s, and the volume is %+v", pod.Spec.NodeName, local.Spec)
	}
	return nil
}
