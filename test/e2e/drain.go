package main

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drained: volumes that can leave a node follow their pods; others wait for it.
func drained(s *scene) {
	away := []*mover{s.mover(disks, node2), s.mover(shared, node2)}
	stays := []*mover{s.mover(images, node2), s.mover(directories, node2)}
	s.Do("pods with volumes of each kind run on node2", func() error { return startAll(node2, away, stays) })
	s.Do("node2 is drained", func() error {
		_, err := s.bed.kubectl(s.Ctx, "", "drain", node2, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m")
		return err
	})
	s.Do("those of the cloud and of NFS run on node1, with their data", func() error { return arriveAll(node1, away) })
	s.Do("the disk is attached to node1 alone", func() error { return s.isAttachedTo(away[0].claim, node1) })
	s.Soon("node2 has nothing of all of them", func() error {
		return atOnce(slices.Concat(away, stays), func(one *mover) error { return s.isNowhereOn(node2, one.claim) })
	})
	s.Soon("the local ones wait", func() error { return errors.Join(stays[0].waits(), stays[1].waits()) })
	s.Do("node2 is back", func() error {
		_, err := s.bed.kubectl(s.Ctx, "", "uncordon", node2)
		return err
	})
	s.Do("the local ones run there, with their data", func() error { return arriveAll(node2, stays) })
	s.Do("all Deployments go", func() error { return removeAll(away, stays) })
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
		err := one.bed.Client.Delete(one.Ctx, one.deployment, client.PropagationPolicy(metav1.DeletePropagationForeground))
		return errors.Join(client.IgnoreNotFound(err), one.gone(one.deployment))
	})
}
