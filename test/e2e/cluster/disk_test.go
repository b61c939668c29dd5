package cluster_test

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// disk: a disk of the cloud is attached to where its pod is, and follows it.
func disk(n *namespace) {
	claim := n.claim(disks, "10Gi")
	one, two := n.pod("one", on(node1), with(data)), n.pod("two", on(node2), with(data))
	scenario.Step("a pod runs on node1", func() error { return n.launch(claim, one) })
	scenario.Step("it writes", func() error { return n.does(one.Name, "echo hello >/data/greeting && sync") })
	scenario.Step("the disk is attached to node1 alone", func() error { return n.isAttachedTo(claim, node1) })
	scenario.Step("the pod goes, and one on node2 comes", func() error { return errors.Join(n.remove(one), n.launch(two)) })
	scenario.Step("it reads", func() error { return n.says(two.Name, "cat /data/greeting", "hello") })
	scenario.Step("the disk is attached to node2 alone", func() error { return n.isAttachedTo(claim, node2) })
	scenario.Step("pod and claim go", func() error { return n.remove(two, claim) })
	n.Soon("and the disk", func() error { return n.hasNoDisk(claim) })
}

// isAttachedTo checks which nodes the cloud has a claim's disk attached to.
func (n *namespace) isAttachedTo(claim *corev1.PersistentVolumeClaim, nodes ...string) error {
	attached, err := n.cluster.Cloud.AttachedTo(n.ctx)
	if err != nil {
		return err
	}
	if got := attached[diskOf(claim)]; !slices.Equal(got, nodes) {
		return fmt.Errorf("the cloud has it attached to %q, not to %q", got, nodes)
	}
	return nil
}

func (n *namespace) hasNoDisk(claim *corev1.PersistentVolumeClaim) error {
	all, err := n.cluster.Cloud.Disks.List(kube.Project, kube.Zone).Context(n.ctx).Do()
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
