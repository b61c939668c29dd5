package main

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/guests"
)

// installed: a cluster whose nodes are instances of the cloud.
func installed(s *tale) {
	s.Chapter("A whole Stowage, and a claim")
	s.Do("etcd, kube-apiserver, the manager and an agent on each node start", s.startStowage)
	s.Do("two StorageBackends of the cloud are made", func() error {
		return s.stowage.Create(s.Ctx, backend(patientClass, "6m"), backend(hastyClass, hastyAfter.String()))
	})
	for _, name := range []string{patientClass, hastyClass} {
		s.Soon("backend "+name+" is Ready", func() error { return s.stowage.BackendIsReady(s.Ctx, name) })
	}
	s.Do("a claim is given a disk", func() (err error) {
		if s.data, err = s.claimFor("data", patientClass); err != nil {
			return err
		}
		_, err = s.cloud.Disks.Get(project, zone, s.data.Spec.VolumeName).Context(s.Ctx).Do()
		return err
	})
}

// moved: attach, mount, write, unmount, detach, and the same on another node.
//
//proves:csi/gce
func moved(s *tale) {
	s.Chapter("A pod moves from node to node")
	first, second := s.pod("first", 1, s.data), s.pod("second", 2, s.data)
	s.Do("a pod on node 1 has the disk mounted", func() error { return s.run(first) })
	s.Do("with a file system that its agent made on the empty disk", func() error { return s.hasFileSystem(first, "ext4") })
	s.Do("it writes a file", func() error { return s.writes(first, s.data, "kept") })
	s.Do("the cloud has the disk attached to node 1", func() error { return s.isAttached(s.data, 1) })
	s.Do("the pod is deleted, and runs on node 2 with the same file", func() error {
		return errors.Join(s.end(first), s.run(second), s.finds(second, s.data, "kept"))
	})
	s.Do("the cloud has the disk attached to node 2 alone", func() error { return s.isAttached(s.data, 2) })
	s.Do("nothing of it is left on node 1", func() error { return s.nothingOnNodes(1) })
}

func (s *tale) hasFileSystem(pod *corev1.Pod, kind string) error {
	var mounts []string
	if err := s.stowage.NodeOf(pod).Ask("Files.Mounts", guests.AgentRoot, &mounts); err != nil {
		return err
	}
	for _, mount := range mounts {
		if !strings.HasPrefix(mount, inPod(pod)) {
			continue
		}
		if !strings.HasSuffix(mount, " "+kind) {
			return fmt.Errorf("it is %q", mount)
		}
		return nil
	}
	return fmt.Errorf("the pod has no mount: %q", mounts)
}

// cameBack: a pod that is made again on its node while the disk is on its way out.
func cameBack(s *tale) {
	s.Chapter("A pod is made again, at once and where it was")
	for n := range 4 {
		pod := s.pod(fmt.Sprintf("again-%d", n+1), 1, s.data)
		s.Do("pod "+pod.Name+" runs on node 1, finds its file, and ends", func() error {
			return errors.Join(s.run(pod), s.finds(pod, s.data, "kept"), s.end(pod))
		})
	}
}

// wanted: two nodes that want one disk.
func wanted(s *tale) {
	s.Chapter("A second pod wants the disk, on the other node")
	second, third := &corev1.Pod{}, s.pod("third", 1, s.data)
	second.Name, second.Namespace = "second", third.Namespace
	s.Do("a pod that uses it is made on node 1", func() error { return s.stowage.Create(s.Ctx, third) })
	s.Do("it is told who has the disk", func() error {
		return s.stowage.AwaitEvent(s.Ctx, third.Name, "FailedAttachVolume", s.nodes[2].Name)
	})
	s.Do(fmt.Sprintf("for %s it waits, told once, and the disk stays where it is", shown), func() error {
		return s.stays(func() error { return errors.Join(s.isAttached(s.data, 2), s.toldOnce(third)) })
	})
	s.Do("the pod on node 2 ends, and the one that waited finds its file", func() error {
		return errors.Join(s.end(second), s.stowage.AwaitMounted(s.Ctx, third), s.finds(third, s.data, "kept"))
	})
	s.Do("it ends as well", func() error { return s.end(third) })
	s.Soon("the disk is attached nowhere", func() error { return s.isDetached(s.data) })
	s.Do("nothing is left on the nodes", func() error { return s.nothingOnNodes(1, 2) })
}

// toldOnce says whether a pod was told once, and not again and again, why its disk
// isn't attached.
func (s *tale) toldOnce(pod *corev1.Pod) error {
	events := &corev1.EventList{}
	if err := s.stowage.Client.List(s.Ctx, events); err != nil {
		return err
	}
	var told int32
	for _, event := range events.Items {
		if event.InvolvedObject.Name != pod.Name || event.Reason != "FailedAttachVolume" {
			continue
		}
		told += max(1, event.Count)
		if event.Series != nil {
			told += event.Series.Count
		}
	}
	if told != 1 {
		return fmt.Errorf("it was told %d times:\n%s", told, s.stowage.EventsOf(s.Ctx, pod.Name))
	}
	return nil
}
