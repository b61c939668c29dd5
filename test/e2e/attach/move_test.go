package attach_test

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// installed: a cluster whose nodes are instances of the cloud.
func installed(s *spec) {
	scenario.Step("etcd, kube-apiserver, the manager and an agent on each node start", s.startStowage)
	// Long before a spec needs them: the manager looks for them each half a minute.
	scenario.Step("the CRDs of snapshots are installed", func() error { return cluster.InstallSnapshots(s.ctx, s.stowage.Config) })
	scenario.Step("two StorageBackends of the cloud are made", func() error {
		return s.stowage.Create(s.ctx, backend(patientClass, "6m"), backend(hastyClass, hastyAfter.String()))
	})
	for _, name := range []string{patientClass, hastyClass} {
		scenario.Soon(s.ctx, "backend "+name+" is Ready", func() error { return s.stowage.BackendIsReady(s.ctx, name) })
	}
	scenario.Step("a claim is given a disk", func() (err error) {
		if s.data, err = s.claimFor("data", patientClass); err != nil {
			return err
		}
		return s.hasDisk(s.data)
	})
	scenario.Step("a pod writes a file to it, and ends", func() error {
		writer := s.pod("writer", 1, s.data)
		return errors.Join(s.run(writer), s.writes(writer, s.data, "kept"), s.end(writer))
	})
}

// hasDisk is an error unless the cloud has a disk for a claim.
func (s *spec) hasDisk(claim *corev1.PersistentVolumeClaim) error {
	_, err := s.cloud.Disks.Get(project, zone, claim.Spec.VolumeName).Context(s.ctx).Do()
	return err
}

// moved: attach, mount, write, unmount, detach, and the same on another node.
func moved(s *spec) {
	var claim *corev1.PersistentVolumeClaim
	var first, second *corev1.Pod
	scenario.Step("another claim is given a disk", func() (err error) {
		claim, err = s.claimFor("moving", patientClass)
		return errors.Join(err, s.hasDisk(claim))
	})
	scenario.Step("a pod on node 1 has the disk mounted", func() error {
		first, second = s.pod("first", 1, claim), s.pod("second", 2, claim)
		return s.run(first)
	})
	scenario.Step("with a file system that its agent made on the empty disk", func() error { return s.hasFileSystem(first, "ext4") })
	scenario.Step("it writes a file", func() error { return s.writes(first, claim, "moved") })
	scenario.Step("the cloud has the disk attached to node 1", func() error { return s.isAttached(claim, 1) })
	scenario.Step("the pod is deleted, and runs on node 2 with the same file", func() error {
		return errors.Join(s.end(first), s.run(second), s.finds(second, claim, "moved"))
	})
	scenario.Step("the cloud has the disk attached to node 2 alone", func() error { return s.isAttached(claim, 2) })
	scenario.Step("nothing of it is left on node 1", func() error { return s.nothingOnNodes(1) })
	scenario.Step("the pod ends, and with the claim the disk goes", func() error {
		return errors.Join(s.end(second), s.stowage.Delete(s.ctx, claim), s.diskGoes(claim))
	})
}

func (s *spec) hasFileSystem(pod *corev1.Pod, kind string) error {
	var mounts []string
	if err := s.stowage.NodeOf(pod).Call(s.ctx, "Files.Mounts", guest.AgentRoot, &mounts); err != nil {
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
func cameBack(s *spec) {
	for n := range 4 {
		pod := s.pod(fmt.Sprintf("again-%d", n+1), 1, s.data)
		scenario.Step("pod "+pod.Name+" runs on node 1, finds its file, and ends", func() error {
			return errors.Join(s.run(pod), s.finds(pod, s.data, "kept"), s.end(pod))
		})
	}
}

// contended: a second pod wants the disk, on the other node.
func contended(s *spec) {
	second, third := s.pod("holder", 2, s.data), s.pod("third", 1, s.data)
	scenario.Step("a pod on node 2 has the disk", func() error { return s.run(second) })
	scenario.Step("a pod that uses it is made on node 1", func() error { return s.stowage.Create(s.ctx, third) })
	scenario.Step("an event of it says which node has the disk", func() error {
		return s.stowage.AwaitEvent(s.ctx, third.Name, "FailedAttachVolume", s.nodes[2].Name)
	})
	scenario.Step(fmt.Sprintf("for %s it waits, with one event, and the disk stays where it is", shown), func() error {
		return s.stays(func() error { return errors.Join(s.isAttached(s.data, 2), s.hasOneEvent(third)) })
	})
	scenario.Step("the pod on node 2 ends, and the one that waited finds its file", func() error {
		return errors.Join(s.end(second), s.stowage.AwaitMounted(s.ctx, third), s.finds(third, s.data, "kept"))
	})
	scenario.Step("it ends as well", func() error { return s.end(third) })
	scenario.Soon(s.ctx, "the disk is attached nowhere", func() error { return s.isDetached(s.data) })
	scenario.Step("nothing is left on the nodes", func() error { return s.nothingOnNodes(1, 2) })
}

// hasOneEvent reports whether one event, not repeated, says why a pod's disk isn't
// attached.
func (s *spec) hasOneEvent(pod *corev1.Pod) error {
	events := &corev1.EventList{}
	if err := s.stowage.Client.List(s.ctx, events); err != nil {
		return err
	}
	var count int32
	for _, event := range events.Items {
		if event.InvolvedObject.Name != pod.Name || event.Reason != "FailedAttachVolume" {
			continue
		}
		count += max(1, event.Count)
		if event.Series != nil {
			count += event.Series.Count
		}
	}
	if count != 1 {
		return fmt.Errorf("it has %d such events:\n%s", count, s.stowage.EventsOf(s.ctx, pod.Name))
	}
	return nil
}
