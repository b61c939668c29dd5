package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/fixture"
)

// What a pod writes to its device, "hello", and how it reads it.
const (
	writeToDevice  = "echo hello | dd of=/dev/data bs=4096 seek=3 conv=fsync"
	readFromDevice = "dd if=/dev/data bs=4096 skip=3 count=1 | head -c 5"
)

// imageAsDevice: a file on a node's disk is a block device of exactly its size.
func imageAsDevice(s *scene) {
	claim := s.claim(images, "16Mi", fixture.AskingBlock())
	writer, reader := s.pod("writer", on(machine), withDevice(data)), s.pod("reader", withDevice(data))
	s.Do("a pod has a device of exactly the size", func() error {
		return errors.Join(s.launch(claim, writer), s.hasDevice(writer, 16<<20))
	})
	s.writtenAndRead(writer, reader)
	s.Do("on the same node", func() error { return isOn(writer.Spec.NodeName, reader) })
}

// diskAsDevice: a disk of the cloud is a block device, too, on the node where the pod is.
func diskAsDevice(s *scene) {
	claim := s.claim(disks, "10Gi", fixture.AskingBlock())
	writer, reader := s.pod("writer", on(node2), withDevice(data)), s.pod("reader", on(node1), withDevice(data))
	s.Do("a pod has a device of exactly the size", func() error {
		return errors.Join(s.launch(claim, writer), s.hasDevice(writer, 10<<30))
	})
	s.writtenAndRead(writer, reader)
	s.Do("on the other node, to which alone it is attached", func() error { return s.isAttachedTo(claim, node1) })
}

func (s *scene) hasDevice(pod *corev1.Pod, bytes int64) error {
	return s.says(pod.Name, "blockdev --getsize64 "+devicePath, fmt.Sprint(bytes))
}

// writtenAndRead: what one pod writes to a device the next one reads.
func (s *scene) writtenAndRead(writer, reader *corev1.Pod) {
	s.Do("it writes", func() error { return s.does(writer.Name, writeToDevice) })
	s.Do("it goes, and another pod comes", func() error { return errors.Join(s.remove(writer), s.launch(reader)) })
	s.Do("which reads", func() error {
		return s.says(reader.Name, readFromDevice, "hello")
	})
}
