package main

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// disk: a disk of the cloud is attached to where its pod is, and follows it.
func disk(s *scene) {
	claim := s.claim(disks, "10Gi")
	one, two := s.pod("one", on(node1), with(data)), s.pod("two", on(node2), with(data))
	s.Do("a pod runs on node1", func() error { return s.launch(claim, one) })
	s.Do("it writes", func() error { return s.does(one.Name, "echo hello >/data/greeting && sync") })
	s.Do("the disk is attached to node1 alone", func() error { return s.isAttachedTo(claim, node1) })
	s.Do("the pod goes, and one on node2 comes", func() error { return errors.Join(s.remove(one), s.launch(two)) })
	s.Do("it reads", func() error { return s.says(two.Name, "cat /data/greeting", "hello") })
	s.Do("the disk is attached to node2 alone", func() error { return s.isAttachedTo(claim, node2) })
	s.Do("pod and claim go", func() error { return s.remove(two, claim) })
	s.Soon("and the disk", func() error { return s.hasNoDisk(claim) })
}

// isAttachedTo checks which nodes the cloud has a claim's disk attached to.
func (s *scene) isAttachedTo(claim *corev1.PersistentVolumeClaim, nodes ...string) error {
	attached, err := s.bed.cloud.attachedTo(s.Ctx)
	if err != nil {
		return err
	}
	if got := attached[diskOf(claim)]; !slices.Equal(got, nodes) {
		return fmt.Errorf("the cloud has it attached to %q, not to %q", got, nodes)
	}
	return nil
}

func (s *scene) hasNoDisk(claim *corev1.PersistentVolumeClaim) error {
	all, err := s.bed.cloud.Disks.List(project, zone).Context(s.Ctx).Do()
	if err != nil {
		return err
	}
	for _, disk := range all.Items {
		if disk.Name == diskOf(claim) {
			return fmt.Errorf("disk %s is there: %+v", disk.Name, disk)
		}
	}
	return nil
}

// diskOf is the name of the disk that is made for a claim at the first attempt.
func diskOf(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }
