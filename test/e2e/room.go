package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/kubenode"
)

// uneven is a backend of whose disks one alone has room for what is asked for.
const uneven = "uneven"

// room: the scheduler knows how much room each node's disk has, and sends no pod to a node
// that has none for its claim.
func room(s *scene) {
	made := backend(uneven, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{Path: base + uneven}})
	s.Do("nodes have disks of 64Mi, and node2 one of 256Mi", func() error {
		err := s.bed.Each(func(node *kubenode.Node) error {
			disk := Disk{Path: base + uneven, Size: 64 << 20}
			if node.Name == node2 {
				disk.Size = 256 << 20
			}
			return node.Host.Ask("Disks.Mount", disk, &kubenode.Nothing{})
		})
		return errors.Join(err, s.create(made))
	})
	s.Soon("the scheduler is told of each", s.capacitiesAreKnown)
	claim, pod := s.claim(uneven, "200Mi"), s.pod("first", with(data))
	s.Do("a pod whose claim is for 200Mi runs on node2", func() error {
		return errors.Join(s.launch(claim, pod), isOn(node2, pod))
	})
	second := s.claim(uneven, "200Mi")
	second.Name = "second"
	waiting := s.pod("second", with(second.Name))
	s.Do("for another one there is no room anywhere", func() error {
		if err := s.create(second, waiting); err != nil {
			return err
		}
		return s.soon(func() error { return s.isUnschedulable(waiting) })
	})
	s.Do("when the first has gone", func() error { return s.remove(pod, claim) })
	s.Soon("it runs on node2", func() error { return errors.Join(s.runs(waiting), isOn(node2, waiting)) })
	s.Do("pod, claim and backend go", func() error { return s.remove(waiting, second, made) })
}

func (s *scene) capacitiesAreKnown() error {
	all := &storagev1.CSIStorageCapacityList{}
	if err := s.bed.Client.List(s.Ctx, all); err != nil {
		return err
	}
	known := 0
	for _, capacity := range all.Items {
		if capacity.StorageClassName == uneven && capacity.Capacity != nil {
			known++
		}
	}
	if known != len(s.bed.Nodes) {
		return fmt.Errorf("the scheduler knows of %d disks", known)
	}
	return nil
}

// isUnschedulable says whether the scheduler found no node for a pod, for want of room.
func (s *scene) isUnschedulable(pod *corev1.Pod) error {
	if err := s.get(pod); err != nil {
		return err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return nil
		}
	}
	return fmt.Errorf("pod %s is on %q: %+v", pod.Name, pod.Spec.NodeName, pod.Status.Conditions)
}
