package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// What a pod writes to its device, "hello", and how it reads it.
const (
	writeToDevice  = "echo hello | dd of=/dev/data bs=4096 seek=3 conv=fsync"
	readFromDevice = "dd if=/dev/data bs=4096 skip=3 count=1 | head -c 5"
)

// imageAsDevice: a file on a node's disk is a block device of exactly its size.
func imageAsDevice(n *namespace) {
	claim := n.claim(images, "16Mi", fixture.AskingBlock())
	writer, reader := n.pod("writer", on(machine), withDevice(data)), n.pod("reader", withDevice(data))
	scenario.Step("a pod has a device of exactly the size", func() error {
		return errors.Join(n.launch(claim, writer), n.hasDevice(writer, 16<<20))
	})
	n.writtenAndRead(writer, reader)
	scenario.Step("on the same node", func() error { return isOn(writer.Spec.NodeName, reader) })
}

// diskAsDevice: a disk of the cloud is a block device, too, on the node where the pod is.
func diskAsDevice(n *namespace) {
	claim := n.claim(disks, "10Gi", fixture.AskingBlock())
	writer, reader := n.pod("writer", on(node2), withDevice(data)), n.pod("reader", on(node1), withDevice(data))
	scenario.Step("a pod has a device of exactly the size", func() error {
		return errors.Join(n.launch(claim, writer), n.hasDevice(writer, 10<<30))
	})
	n.writtenAndRead(writer, reader)
	scenario.Step("on the other node, to which alone it is attached", func() error { return n.isAttachedTo(claim, node1) })
}

func (n *namespace) hasDevice(pod *corev1.Pod, bytes int64) error {
	return n.says(pod.Name, "blockdev --getsize64 "+devicePath, fmt.Sprint(bytes))
}

// writtenAndRead: what one pod writes to a device the next one reads.
func (n *namespace) writtenAndRead(writer, reader *corev1.Pod) {
	scenario.Step("it writes", func() error { return n.does(writer.Name, writeToDevice) })
	scenario.Step("it goes, and another pod comes", func() error { return errors.Join(n.remove(writer), n.launch(reader)) })
	scenario.Step("which reads", func() error {
		return n.says(reader.Name, readFromDevice, "hello")
	})
}
