package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/story"
)

// outOfServiceBound is how long a disk may take from a node that somebody has put out
// of service to its pod on another one.
const outOfServiceBound = 10 * time.Second

// died: a node is gone without a warning, with two disks mounted. There is nobody in
// this cluster who notices dead nodes and cleans up their pods: the story does it.
func died(s *tale) {
	s.Chapter("A node dies")
	var left, gone *corev1.Pod
	s.Do("two pods on node 1 write files, one to a disk of the hasty backend", func() (err error) {
		if s.spare, err = s.claimFor("spare", hastyClass); err != nil {
			return err
		}
		left, gone = s.pod("left", 1, s.spare), s.pod("gone", 1, s.data)
		return errors.Join(s.run(left, gone), s.writes(left, s.spare, "spare"))
	})
	s.Do("node 1 is killed", func() error {
		s.nodes[1].Crash()
		return nil
	})
	heir, patient := s.pod("heir", 2, s.spare), s.pod("patient", 2, s.data)
	s.Do("its pods are removed, and made anew on node 2", func() error {
		return errors.Join(s.forceEnd(left, gone), s.stowage.Create(s.Ctx, heir, patient))
	})
	s.Do(fmt.Sprintf("for %s, while node 1 counts as Ready, its disks stay", shown), func() error {
		return s.stays(func() error { return errors.Join(s.isAttached(s.spare, 1), s.isAttached(s.data, 1)) })
	})
	var notReady time.Time
	s.Do("node 1 is found not Ready", func() (err error) {
		notReady, err = s.markReady(corev1.ConditionUnknown)
		return err
	})
	s.Do(fmt.Sprintf("the hasty backend's disk is on node 2 after its %s, and not before", hastyAfter), func() error {
		err := story.Eventually(s.Ctx, func() error { return s.isAttached(s.spare, 2) })
		if took := time.Since(notReady); err == nil && took < hastyAfter {
			err = fmt.Errorf("it is there %s after node 1 was found not Ready", took)
		}
		return errors.Join(err, s.stowage.AwaitMounted(s.Ctx, heir), s.finds(heir, s.spare, "spare"))
	})
	s.Do("the other disk is still where it was", func() error { return s.isAttached(s.data, 1) })
	s.outOfService(patient)
	s.Do("the hasty pod ends, and its claim goes; the disk waits, for node 1 still says that it uses it", func() error {
		return errors.Join(s.end(heir), s.stowage.Delete(s.Ctx, s.spare),
			s.stowage.AwaitEvent(s.Ctx, s.spare.Spec.VolumeName, "VolumeDelete", s.nodes[1].Name+" still lists"))
	})
}

// outOfService says that node 1 is, and expects the disk on the pod's node soon.
func (s *tale) outOfService(pod *corev1.Pod) {
	var tainted time.Time
	s.Do("somebody puts node 1 out of service", func() error {
		tainted = time.Now()
		return s.taint(corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	})
	s.Do(fmt.Sprintf("within %s the pod on node 2 has its disk, with its file", outOfServiceBound), func() error {
		err := s.arrives(pod)
		if took := time.Since(tainted); err == nil && took > outOfServiceBound {
			err = fmt.Errorf("it takes %s", took)
		}
		return err
	})
}

// returned: the node that died comes back, and knows nothing.
func returned(s *tale) {
	s.Chapter("The node comes back")
	s.Do("node 1 is booted, with what the cloud has attached to it", func() error {
		if err := s.nodes[1].BootAgain(s.Ctx); err != nil {
			return err
		}
		_, err := s.cloud.Instances.Reset(project, zone, s.nodes[1].Name).Context(s.Ctx).Do()
		return err
	})
	s.Do("it is Ready, and back in service", func() error {
		_, err := s.markReady(corev1.ConditionTrue)
		return errors.Join(err, s.taint())
	})
	s.Do("its agent starts", func() error { return s.stowage.StartAgent(s.nodes[1].Name) })
	s.Do("nothing of the old disks is there", func() error { return s.nothingOnNodes(1) })
	s.Do("what moved away stays away", func() error { return s.isAttached(s.data, 2) })
	s.Do("the pod moves back to it", func() error {
		patient := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.data.Namespace, Name: "patient"}}
		home := s.pod("home", 1, s.data)
		return errors.Join(s.end(patient), s.stowage.Create(s.Ctx, home), s.arrives(home), s.end(home))
	})
	s.Do("the disk that waited for it goes", func() error { return s.diskGoes(s.spare) })
}

// stopped: the cloud itself says that a node's machine is off.
func stopped(s *tale) {
	s.Chapter("A node's machine is stopped")
	pod, heir := s.pod("on-stopped", 1, s.data), s.pod("elsewhere", 2, s.data)
	s.Do("a pod runs on node 1, whose machine is stopped at the cloud", func() error {
		if err := s.run(pod); err != nil {
			return err
		}
		s.nodes[1].Crash()
		_, err := s.cloud.Instances.Stop(project, zone, s.nodes[1].Name).Context(s.Ctx).Do()
		return err
	})
	s.Soon("the cloud says so", func() error {
		instance, err := s.cloud.Instances.Get(project, zone, s.nodes[1].Name).Context(s.Ctx).Do()
		if err == nil && instance.Status != "TERMINATED" {
			err = fmt.Errorf("instance %s is %s", instance.Name, instance.Status)
		}
		return err
	})
	s.Do("node 1 is found not Ready, its pod is removed, and made anew on node 2", func() error {
		_, err := s.markReady(corev1.ConditionUnknown)
		return errors.Join(err, s.forceEnd(pod), s.stowage.Create(s.Ctx, heir))
	})
	s.Do("it gets its disk, with its file, long before the policy's time", func() error { return s.arrives(heir) })
	s.Do("node 1 is started and booted, and has nothing", func() error {
		_, err := s.cloud.Instances.Start(project, zone, s.nodes[1].Name).Context(s.Ctx).Do()
		if err == nil {
			_, err = s.markReady(corev1.ConditionTrue)
		}
		return errors.Join(err, s.nodes[1].BootAgain(s.Ctx), s.stowage.StartAgent(s.nodes[1].Name), s.nothingOnNodes(1), s.end(heir))
	})
}

// markReady does what node-lifecycle does with node 1, and returns when it did so.
func (s *tale) markReady(status corev1.ConditionStatus) (time.Time, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodes[1].Name}}
	if err := s.stowage.Client.Get(s.Ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return time.Time{}, err
	}
	before, now := node.DeepCopy(), metav1.Now()
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	ready := &node.Status.Conditions[at]
	ready.Status, ready.Reason, ready.Message = status, "ToldByTheStory", "set by hand: nobody looks after nodes here"
	ready.LastTransitionTime, ready.LastHeartbeatTime = now, now
	// The API keeps whole seconds.
	return now.Truncate(time.Second), s.stowage.Client.Status().Patch(s.Ctx, node, client.StrategicMergeFrom(before))
}

// taint gives node 1 these taints, and no others.
func (s *tale) taint(taints ...corev1.Taint) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodes[1].Name}}
	return s.stowage.Change(s.Ctx, node, func() { node.Spec.Taints = taints })
}
