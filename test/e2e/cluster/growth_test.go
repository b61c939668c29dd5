package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// imageGrows: a file system in a file on a node's disk grows while its pod writes. It is
// on a guest: the machine's kernel may not let root grow ext4.
func imageGrows(n *namespace) {
	claim := n.claim(images, "32Mi")
	pod := n.pod("writer", on(node1), with(data), func(spec *corev1.PodSpec) {
		spec.Containers[0].Command[2] = "trap exit TERM; echo hello >/data/greeting; while echo line; do sleep 0.1; done >/data/lines"
	})
	var before string
	scenario.Step("a pod runs and writes", func() error {
		if err := n.launch(claim, pod); err != nil {
			return err
		}
		before = pod.Status.ContainerStatuses[0].ContainerID
		return nil
	})
	scenario.Step("the claim asks for more", func() error { return n.grow(claim, "96Mi") })
	n.Soon("claim and volume have it, with nothing left to be done", func() error { return n.hasGrown(claim, "96Mi") })
	scenario.Step("the pod sees it", func() error { return n.hasRoom(pod, 64) })
	scenario.Step("and is the same, and writes on", func() error {
		if err := n.runs(pod); err != nil {
			return err
		}
		if after := pod.Status.ContainerStatuses[0].ContainerID; after != before {
			return fmt.Errorf("container %s became %s", before, after)
		}
		return n.says(pod.Name, "a=$(wc -l </data/lines); until test $(wc -l </data/lines) -gt $a; do sleep 0.5; done; cat /data/greeting", "hello")
	})
}

// diskGrows: a disk of the cloud grows at once. Where the node's kernel doesn't see it, the
// file system does so when the disk is attached the next time.
func diskGrows(n *namespace) {
	claim := n.claim(disks, "10Gi")
	one, two := n.pod("one", on(node1), with(data)), n.pod("two", on(node2), with(data))
	scenario.Step("a pod runs and writes", func() error {
		return errors.Join(n.launch(claim, one), n.does(one.Name, "echo hello >/data/greeting && sync"))
	})
	scenario.Step("the claim asks for more", func() error { return n.grow(claim, "12Gi") })
	n.Soon("the disk is larger", func() error {
		disk, err := n.cluster.Cloud.Disks.Get(kube.Project, kube.Zone, diskOf(claim)).Context(n.ctx).Do()
		if err == nil && disk.SizeGb != 12 {
			err = fmt.Errorf("it has %d GB", disk.SizeGb)
		}
		return err
	})
	scenario.Step("the claim doesn't promise what its node can't see", func() error {
		if n.hasGrown(claim, "12Gi") == nil {
			return errors.New("it does")
		}
		return n.does(one.Name, "echo more >>/data/greeting && sync")
	})
	scenario.Step("the pod goes, and one on node2 comes", func() error { return errors.Join(n.remove(one), n.launch(two)) })
	n.Soon("claim and volume have it, with nothing left to be done", func() error { return n.hasGrown(claim, "12Gi") })
	scenario.Step("the pod sees it, and finds its file", func() error {
		return errors.Join(n.hasRoom(two, 11<<10), n.says(two.Name, "cat /data/greeting", "hello\nmore"))
	})
}

// deviceGrows: where the kernel sees it, a disk that is a block device grows in its pod.
func deviceGrows(n *namespace) {
	claim := n.claim(machineDisks, "10Gi", fixture.AskingBlock())
	pod := n.pod("user", on(machine), withDevice(data))
	scenario.Step("a pod has a device", func() error { return errors.Join(n.launch(claim, pod), n.hasDevice(pod, 10<<30)) })
	scenario.Step("the claim asks for more", func() error { return n.grow(claim, "12Gi") })
	n.Soon("claim and volume have it, with nothing left to be done", func() error { return n.hasGrown(claim, "12Gi") })
	scenario.Step("the pod sees it", func() error { return n.hasDevice(pod, 12<<30) })
}

// hasRoom checks that a pod's volume has more than so many MiB.
func (n *namespace) hasRoom(pod *corev1.Pod, least int) error {
	return n.says(pod.Name, fmt.Sprintf("set -- $(df -m /data | tail -1); test $2 -gt %d && echo more", least), "more")
}
