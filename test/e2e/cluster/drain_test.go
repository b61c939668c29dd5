package cluster_test

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// drained: volumes that can leave a node follow their pods; others wait for it.
func drained(n *namespace) {
	away := []*mover{n.mover(disks, node2), n.mover(shared, node2)}
	stays := []*mover{n.mover(images, node2), n.mover(directories, node2)}
	scenario.Step("pods with volumes of each kind run on node2", func() error { return startAll(node2, away, stays) })
	scenario.Step("node2 is drained", func() error {
		_, err := n.cluster.Kubectl(n.ctx, "", "drain", node2, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m")
		return err
	})
	scenario.Step("those of the cloud and of NFS run on node1, with their data", func() error { return arriveAll(node1, away) })
	scenario.Step("the disk is attached to node1 alone", func() error { return n.isAttachedTo(away[0].claim, node1) })
	n.Soon("node2 has nothing of all of them", func() error {
		return atOnce(slices.Concat(away, stays), func(one *mover) error { return n.isNowhereOn(node2, one.claim) })
	})
	n.Soon("the local ones wait", func() error { return errors.Join(stays[0].waits(), stays[1].waits()) })
	scenario.Step("node2 is back", func() error {
		_, err := n.cluster.Kubectl(n.ctx, "", "uncordon", node2)
		return err
	})
	scenario.Step("the local ones run there, with their data", func() error { return arriveAll(node2, stays) })
	scenario.Step("all Deployments go", func() error { return removeAll(away, stays) })
}

// startAll creates movers, and waits until all run on a node.
func startAll(node string, groups ...[]*mover) error {
	return atOnce(slices.Concat(groups...), func(one *mover) error { return one.start(node) })
}

// arriveAll waits until all have come to a node.
func arriveAll(node string, movers []*mover) error {
	return atOnce(movers, func(one *mover) error { return one.arrives(node) })
}

// removeAll removes movers, with their pods.
func removeAll(groups ...[]*mover) error {
	return atOnce(slices.Concat(groups...), func(one *mover) error {
		err := one.cluster.Client.Delete(one.ctx, one.deployment, client.PropagationPolicy(metav1.DeletePropagationForeground))
		return errors.Join(client.IgnoreNotFound(err), one.gone(one.deployment))
	})
}
