package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// imageGrows: a file system in a file on a node's disk grows while its pod writes.
func imageGrows(s *scene) { s.grows(node1, s.claim(images, "32Mi"), "96Mi", 64) }

// diskGrows: so does one on a disk of the cloud.
func diskGrows(s *scene) { s.grows(machine, s.claim(machineDisks, "10Gi"), "12Gi", 11<<10) }

// grows has a claim grow to a size, of which a pod on a node sees at least so many MiB.
func (s *scene) grows(node string, claim *corev1.PersistentVolumeClaim, size string, least int) {
	pod := s.pod("writer", on(node), with(data), func(spec *corev1.PodSpec) {
		spec.Containers[0].Command[2] = "trap exit TERM; echo hello >/data/greeting; while echo line; do sleep 0.1; done >/data/lines"
	})
	var before string
	s.Do("a pod runs and writes", func() error {
		if err := s.launch(claim, pod); err != nil {
			return err
		}
		before = pod.Status.ContainerStatuses[0].ContainerID
		return nil
	})
	s.Do("the claim asks for more", func() error { return s.grow(claim, size) })
	s.Soon("claim and volume have it, with nothing left to be done", func() error { return s.hasGrown(claim, size) })
	s.Do("the pod sees it", func() error {
		return s.says(pod.Name, fmt.Sprintf("set -- $(df -m /data | tail -1); test $2 -gt %d && echo more", least), "more")
	})
	s.Do("and is the same, and writes on", func() error {
		if err := s.runs(pod); err != nil {
			return err
		}
		if after := pod.Status.ContainerStatuses[0].ContainerID; after != before {
			return fmt.Errorf("container %s became %s", before, after)
		}
		return s.says(pod.Name, "a=$(wc -l </data/lines); sleep 1; test $(wc -l </data/lines) -gt $a && cat /data/greeting", "hello")
	})
}
