package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// died: a node is gone without a warning, and an administrator marks it as off. Volumes that
// can leave it do so, those on its disk come back with it.
func died(n *namespace) {
	away := []*mover{n.mover(disks, node1), n.mover(shared, node1)}
	stays := []*mover{n.mover(images, node1), n.mover(directories, node1)}
	scenario.Step("pods with volumes of each kind run on node1", func() error { return startAll(node1, away, stays) })
	scenario.Step("node1 is killed", func() error {
		n.cluster.Guest(node1).Crash()
		return nil
	})
	n.Soon("it counts as not Ready", func() error {
		if n.cluster.IsReady(n.ctx, node1) == nil {
			return errors.New("node1 is Ready")
		}
		return nil
	})
	scenario.Step("until it is out of service, its disk stays attached to it", func() error { return n.isAttachedTo(away[0].claim, node1) })
	scenario.Step("an administrator puts it out of service", func() error {
		_, err := n.cluster.Kubectl(n.ctx, "", "taint", "nodes", node1, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute")
		return err
	})
	scenario.Step("those of the cloud and of NFS run on node2, with their data", func() error { return arriveAll(node2, away) })
	scenario.Step("the disk is attached to node2 alone", func() error { return n.isAttachedTo(away[0].claim, node2) })
	n.Soon("of its pods none is left there, and no attachment", n.nothingIsOn(node1))
	scenario.Step("the local ones wait", func() error { return errors.Join(stays[0].waits(), stays[1].waits()) })
	n.returns(node1)
	scenario.Step("the local ones run there, with their data", func() error { return arriveAll(node1, stays) })
	n.Soon("node1 has nothing of the others", func() error {
		return errors.Join(n.isNowhereOn(node1, away[0].claim), n.isNowhereOn(node1, away[1].claim))
	})
	scenario.Step("which are where they were, with the same pods", func() error {
		return errors.Join(arriveAll(node2, away), n.isAttachedTo(away[0].claim, node2))
	})
	scenario.Step("all Deployments go", func() error { return removeAll(away, stays) })
}

// returns boots a node that was killed, and puts it back into service.
func (n *namespace) returns(name string) {
	n.boots(name)
	n.Soon("it is Ready", func() error { return n.cluster.IsReady(n.ctx, name) })
	scenario.Step("it is back in service", func() error {
		_, err := n.cluster.Kubectl(n.ctx, "", "taint", "nodes", name, corev1.TaintNodeOutOfService+"-")
		return err
	})
	n.Soon("the agent serves all drivers there", func() error {
		return errors.Join(n.cluster.AgentsAreReady(n.ctx), n.cluster.HasDrivers(n.ctx, n.cluster.Node(name)))
	})
}

// boots has a node that was killed boot again.
func (n *namespace) boots(name string) {
	scenario.Step(name+" boots, with what the cloud has attached to it, and joins", func() error {
		if err := n.cluster.Guest(name).BootAgain(n.ctx); err != nil {
			return err
		}
		if _, err := n.cluster.Cloud.Instances.Reset(kube.Project, kube.Zone, name).Context(n.ctx).Do(); err != nil {
			return err
		}
		return n.cluster.Node(name).Join(n.ctx)
	})
}

// nothingIsOn reports whether the spec has neither pods nor attachments on a node, and its
// volumesAttached is empty.
func (n *namespace) nothingIsOn(name string) func() error {
	return func() error {
		pods, attachments, node := &corev1.PodList{}, &storagev1.VolumeAttachmentList{}, &corev1.Node{}
		node.Name = name
		if err := errors.Join(n.cluster.Client.List(n.ctx, pods), n.cluster.Client.List(n.ctx, attachments), n.get(node)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Namespace == n.name && pod.Spec.NodeName == name {
				return fmt.Errorf("pod %s is on %s", pod.Name, name)
			}
		}
		for _, attachment := range attachments.Items {
			if attachment.Spec.NodeName == name {
				return fmt.Errorf("attachment %s is to %s", attachment.Name, name)
			}
		}
		if attached := node.Status.VolumesAttached; len(attached) > 0 {
			return fmt.Errorf("volumesAttached of %s has %v", name, attached)
		}
		return nil
	}
}
