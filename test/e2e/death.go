package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/test/guests"
)

// died: a node is gone without a warning, and somebody says that it is off. What can
// leave it does so, what lies on its disk comes back with it.
func died(s *scene) {
	away := []*mover{s.mover(disks, node1), s.mover(shared, node1)}
	stays := []*mover{s.mover(images, node1), s.mover(directories, node1)}
	s.Do("pods with volumes of each kind run on node1", func() error { return startAll(node1, away, stays) })
	s.Do("node1 is killed", func() error {
		s.guest(node1).Crash()
		return nil
	})
	s.Soon("it counts as not Ready", func() error {
		if s.bed.IsReady(s.Ctx, node1) == nil {
			return errors.New("node1 is Ready")
		}
		return nil
	})
	s.Do("while nobody says that it is off, its disk stays attached to it", func() error { return s.isAttachedTo(away[0].claim, node1) })
	s.Do("an administrator puts it out of service", func() error {
		_, err := s.bed.kubectl(s.Ctx, "", "taint", "nodes", node1, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute")
		return err
	})
	s.Do("those of the cloud and of NFS run on node2, with their data", func() error { return arriveAll(node2, away) })
	s.Do("the disk is attached to node2 alone", func() error { return s.isAttachedTo(away[0].claim, node2) })
	s.Soon("of its pods none is left there, and no attachment", s.nothingIsOn(node1))
	s.Do("the local ones wait", func() error { return errors.Join(stays[0].waits(), stays[1].waits()) })
	s.returns(node1)
	s.Do("the local ones run there, with their data", func() error { return arriveAll(node1, stays) })
	s.Soon("node1 has nothing of the others", func() error {
		return errors.Join(s.isNowhereOn(node1, away[0].claim), s.isNowhereOn(node1, away[1].claim))
	})
	s.Do("which are where they were, with the same pods", func() error {
		return errors.Join(arriveAll(node2, away), s.isAttachedTo(away[0].claim, node2))
	})
	s.Do("all Deployments go", func() error { return removeAll(away, stays) })
}

// returns boots a node that was killed, and puts it back into service.
func (s *scene) returns(name string) {
	s.boots(name)
	s.Soon("it is Ready", func() error { return s.bed.IsReady(s.Ctx, name) })
	s.Do("it is back in service", func() error {
		_, err := s.bed.kubectl(s.Ctx, "", "taint", "nodes", name, corev1.TaintNodeOutOfService+"-")
		return err
	})
	s.Soon("the agent serves all drivers there", func() error {
		return errors.Join(s.bed.agentsAreReady(), s.bed.hasDrivers(s.bed.Node(name)))
	})
}

// boots has a node that was killed boot again.
func (s *scene) boots(name string) {
	s.Do(name+" boots, with what the cloud has attached to it, and joins", func() error {
		if err := s.guest(name).BootAgain(s.Ctx); err != nil {
			return err
		}
		if _, err := s.bed.cloud.Instances.Reset(project, zone, name).Context(s.Ctx).Do(); err != nil {
			return err
		}
		return s.bed.Node(name).Join()
	})
}

func (s *scene) guest(name string) *guests.Node {
	for _, guest := range s.bed.Guests {
		if guest.Name == name {
			return guest
		}
	}
	return nil
}

// nothingIsOn says whether the story has neither pods nor attachments on a node, and the
// node is told of none.
func (s *scene) nothingIsOn(name string) func() error {
	return func() error {
		pods, attachments, node := &corev1.PodList{}, &storagev1.VolumeAttachmentList{}, &corev1.Node{}
		node.Name = name
		if err := errors.Join(s.bed.Client.List(s.Ctx, pods), s.bed.Client.List(s.Ctx, attachments), s.get(node)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Namespace == s.namespace && pod.Spec.NodeName == name {
				return fmt.Errorf("pod %s is on %s", pod.Name, name)
			}
		}
		for _, attachment := range attachments.Items {
			if attachment.Spec.NodeName == name {
				return fmt.Errorf("attachment %s is to %s", attachment.Name, name)
			}
		}
		if told := node.Status.VolumesAttached; len(told) > 0 {
			return fmt.Errorf("%s is told of %v", name, told)
		}
		return nil
	}
}
