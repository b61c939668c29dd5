package attach_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// outOfServiceBound is how long a disk may take from a node that is put out of service to
// its pod on another one: on a machine that is busy, and long before the disk is taken by force.
const outOfServiceBound = time.Minute

// died: a node is gone without a warning, with two disks mounted. This cluster has no
// controller of dead nodes and their pods: the spec plays it.
func died(s *spec) {
	var left, gone *corev1.Pod
	scenario.Step("two pods on node 1 write files, one to a disk of the hasty backend", func() (err error) {
		if s.spare, err = s.claimFor("spare", hastyClass); err != nil {
			return err
		}
		left, gone = s.pod("left", 1, s.spare), s.pod("gone", 1, s.data)
		return errors.Join(s.run(left, gone), s.writes(left, s.spare, "spare"))
	})
	scenario.Step("node 1 is killed", func() error {
		s.nodes[1].Crash()
		return nil
	})
	successor, patient := s.pod("successor", 2, s.spare), s.pod("patient", 2, s.data)
	scenario.Step("its pods are removed, and created again on node 2", func() error {
		return errors.Join(s.forceEnd(left, gone), s.stowage.Create(s.ctx, successor, patient))
	})
	scenario.Step(fmt.Sprintf("for %s, while node 1 counts as Ready, its disks stay", shown), func() error {
		return s.stays(func() error { return errors.Join(s.isAttached(s.spare, 1), s.isAttached(s.data, 1)) })
	})
	var notReady time.Time
	scenario.Step("node 1 is found not Ready", func() (err error) {
		notReady, err = s.markReady(corev1.ConditionUnknown)
		return err
	})
	scenario.Step(fmt.Sprintf("the hasty backend's disk is on node 2 after its %s, and not before", hastyAfter), func() error {
		err := scenario.Eventually(s.ctx, func() error { return s.isAttached(s.spare, 2) })
		if took := time.Since(notReady); err == nil && took < hastyAfter {
			err = fmt.Errorf("it is there %s after node 1 was found not Ready", took)
		}
		return errors.Join(err, s.stowage.AwaitMounted(s.ctx, successor), s.finds(successor, s.spare, "spare"))
	})
	scenario.Step("the other disk is still where it was", func() error { return s.isAttached(s.data, 1) })
	s.outOfService(patient)
	scenario.Step("the hasty pod ends, and its claim goes; the disk waits, for node 1 still says that it uses it", func() error {
		return errors.Join(s.end(successor), s.stowage.Delete(s.ctx, s.spare),
			s.stowage.AwaitEvent(s.ctx, s.spare.Spec.VolumeName, "VolumeDelete", s.nodes[1].Name+" still lists"))
	})
}

// outOfService taints node 1, and expects the disk on the pod's node soon.
func (s *spec) outOfService(pod *corev1.Pod) {
	var tainted time.Time
	scenario.Step("an administrator puts node 1 out of service", func() error {
		tainted = time.Now()
		return s.taint(corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	})
	scenario.Step(fmt.Sprintf("within %s the pod on node 2 has its disk, with its file", outOfServiceBound), func() error {
		err := s.arrives(pod)
		if took := time.Since(tainted); err == nil && took > outOfServiceBound {
			err = fmt.Errorf("it takes %s", took)
		}
		return err
	})
}

// returned: the node that died comes back, with nothing in its memory.
func returned(s *spec) {
	scenario.Step("node 1 is booted, with what the cloud has attached to it", func() error {
		if err := s.nodes[1].BootAgain(s.ctx); err != nil {
			return err
		}
		_, err := s.cloud.Instances.Reset(project, zone, s.nodes[1].Name).Context(s.ctx).Do()
		return err
	})
	scenario.Step("it is Ready, and back in service", func() error {
		_, err := s.markReady(corev1.ConditionTrue)
		return errors.Join(err, s.taint())
	})
	scenario.Step("its agent starts", func() error { return s.stowage.StartAgent(s.ctx, s.nodes[1].Name) })
	scenario.Step("nothing of the old disks is there", func() error { return s.nothingOnNodes(1) })
	scenario.Step("what moved away stays away", func() error { return s.isAttached(s.data, 2) })
	scenario.Step("the pod moves back to it", func() error {
		patient := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.data.Namespace, Name: "patient"}}
		home := s.pod("home", 1, s.data)
		return errors.Join(s.end(patient), s.stowage.Create(s.ctx, home), s.arrives(home), s.end(home))
	})
	scenario.Step("the disk that waited for it goes", func() error { return s.diskGoes(s.spare) })
}

// stopped: the cloud itself says that a node's machine is off.
func stopped(s *spec) {
	pod, successor := s.pod("on-stopped", 1, s.data), s.pod("elsewhere", 2, s.data)
	scenario.Step("a pod runs on node 1, whose machine is stopped at the cloud", func() error {
		if err := s.run(pod); err != nil {
			return err
		}
		s.nodes[1].Crash()
		_, err := s.cloud.Instances.Stop(project, zone, s.nodes[1].Name).Context(s.ctx).Do()
		return err
	})
	scenario.Soon(s.ctx, "the cloud says so", func() error {
		instance, err := s.cloud.Instances.Get(project, zone, s.nodes[1].Name).Context(s.ctx).Do()
		if err == nil && instance.Status != "TERMINATED" {
			err = fmt.Errorf("instance %s is %s", instance.Name, instance.Status)
		}
		return err
	})
	scenario.Step("node 1 is found not Ready, its pod is removed, and created again on node 2", func() error {
		_, err := s.markReady(corev1.ConditionUnknown)
		return errors.Join(err, s.forceEnd(pod), s.stowage.Create(s.ctx, successor))
	})
	scenario.Step("it gets its disk, with its file, long before the policy's time", func() error { return s.arrives(successor) })
	scenario.Step("node 1 is started and booted, and has nothing", func() error {
		_, err := s.cloud.Instances.Start(project, zone, s.nodes[1].Name).Context(s.ctx).Do()
		if err == nil {
			_, err = s.markReady(corev1.ConditionTrue)
		}
		return errors.Join(err, s.nodes[1].BootAgain(s.ctx), s.stowage.StartAgent(s.ctx, s.nodes[1].Name), s.nothingOnNodes(1), s.end(successor))
	})
}

// markReady does what node-lifecycle does with node 1, and returns when it did so.
func (s *spec) markReady(status corev1.ConditionStatus) (time.Time, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodes[1].Name}}
	if err := s.stowage.Client.Get(s.ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return time.Time{}, err
	}
	before, now := node.DeepCopy(), metav1.Now()
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	ready := &node.Status.Conditions[at]
	ready.Status, ready.Reason, ready.Message = status, "SetByTheTest", "this cluster has no node lifecycle controller"
	ready.LastTransitionTime, ready.LastHeartbeatTime = now, now
	// The API keeps whole seconds.
	return now.Truncate(time.Second), s.stowage.Client.Status().Patch(s.ctx, node, client.StrategicMergeFrom(before))
}

// taint gives node 1 these taints, and no others.
func (s *spec) taint(taints ...corev1.Taint) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodes[1].Name}}
	return s.stowage.Change(s.ctx, node, func() { node.Spec.Taints = taints })
}
