package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/fixture"
)

// imageGrows: a file system in a file on a node's disk grows while its pod writes. It is
// on a guest: the machine's kernel may not let root grow ext4.
func imageGrows(s *scene) {
	claim := s.claim(images, "32Mi")
	pod := s.pod("writer", on(node1), with(data), func(spec *corev1.PodSpec) {
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
	s.Do("the claim asks for more", func() error { return s.grow(claim, "96Mi") })
	s.Soon("claim and volume have it, with nothing left to be done", func() error { return s.hasGrown(claim, "96Mi") })
	s.Do("the pod sees it", func() error { return s.hasRoom(pod, 64) })
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

// diskGrows: a disk of the cloud grows at once. Where the node's kernel doesn't see it, the
// file system does so when the disk is attached the next time.
func diskGrows(s *scene) {
	claim := s.claim(disks, "10Gi")
	one, two := s.pod("one", on(node1), with(data)), s.pod("two", on(node2), with(data))
	s.Do("a pod runs and writes", func() error {
		return errors.Join(s.launch(claim, one), s.does(one.Name, "echo hello >/data/greeting && sync"))
	})
	s.Do("the claim asks for more", func() error { return s.grow(claim, "12Gi") })
	s.Soon("the disk is larger", func() error {
		disk, err := s.bed.cloud.Disks.Get(project, zone, diskOf(claim)).Context(s.Ctx).Do()
		if err == nil && disk.SizeGb != 12 {
			err = fmt.Errorf("it has %d GB", disk.SizeGb)
		}
		return err
	})
	s.Do("the claim doesn't promise what its node can't see", func() error {
		if s.hasGrown(claim, "12Gi") == nil {
			return errors.New("it does")
		}
		return s.does(one.Name, "echo more >>/data/greeting && sync")
	})
	s.Do("the pod goes, and one on node2 comes", func() error { return errors.Join(s.remove(one), s.launch(two)) })
	s.Soon("claim and volume have it, with nothing left to be done", func() error { return s.hasGrown(claim, "12Gi") })
	s.Do("the pod sees it, and finds its file", func() error {
		return errors.Join(s.hasRoom(two, 11<<10), s.says(two.Name, "cat /data/greeting", "hello\nmore"))
	})
}

// deviceGrows: where the kernel sees it, a disk that is a block device grows in its pod.
func deviceGrows(s *scene) {
	claim := s.claim(machineDisks, "10Gi", fixture.AskingBlock())
	pod := s.pod("user", on(machine), withDevice(data))
	s.Do("a pod has a device", func() error { return errors.Join(s.launch(claim, pod), s.hasDevice(pod, 10<<30)) })
	s.Do("the claim asks for more", func() error { return s.grow(claim, "12Gi") })
	s.Soon("claim and volume have it, with nothing left to be done", func() error { return s.hasGrown(claim, "12Gi") })
	s.Do("the pod sees it", func() error { return s.hasDevice(pod, 12<<30) })
}

// hasRoom checks that a pod's volume has more than so many MiB.
func (s *scene) hasRoom(pod *corev1.Pod, least int) error {
	return s.says(pod.Name, fmt.Sprintf("set -- $(df -m /data | tail -1); test $2 -gt %d && echo more", least), "more")
}
