package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// uneven is a backend of whose disks one alone has room for what is asked for.
const uneven = "uneven"

// room: the scheduler knows how much room each node's disk has, and sends no pod to a node
// that has none for its claim.
func room(n *namespace) {
	made := kube.Backend(uneven, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{Path: kube.Base + uneven}})
	scenario.Step("nodes have disks of 64Mi, and node2 one of 256Mi", func() error {
		err := n.cluster.Each(func(node *kubenode.Node) error {
			disk := Disk{Path: kube.Base + uneven, Size: 64 << 20}
			if node.Name == node2 {
				disk.Size = 256 << 20
			}
			return node.Host.Call(n.ctx, "Disks.Mount", disk, &guest.Nothing{})
		})
		return errors.Join(err, n.create(made))
	})
	n.Soon("the scheduler has the capacity of each", n.capacitiesAreKnown)
	claim, pod := n.claim(uneven, "200Mi"), n.pod("first", with(data))
	scenario.Step("a pod whose claim is for 200Mi runs on node2", func() error {
		return errors.Join(n.launch(claim, pod), isOn(node2, pod))
	})
	second := n.claim(uneven, "200Mi")
	second.Name = "second"
	waiting := n.pod("second", with(second.Name))
	scenario.Step("for another one there is no room anywhere", func() error {
		if err := n.create(second, waiting); err != nil {
			return err
		}
		return n.soon(func() error { return n.isUnschedulable(waiting) })
	})
	scenario.Step("when the first has gone", func() error { return n.remove(pod, claim) })
	n.Soon("it runs on node2", func() error { return errors.Join(n.runs(waiting), isOn(node2, waiting)) })
	scenario.Step("pod, claim and backend go", func() error { return n.remove(waiting, second, made) })
}

func (n *namespace) capacitiesAreKnown() error {
	all := &storagev1.CSIStorageCapacityList{}
	if err := n.cluster.Client.List(n.ctx, all); err != nil {
		return err
	}
	known := 0
	for _, capacity := range all.Items {
		if capacity.StorageClassName == uneven && capacity.Capacity != nil {
			known++
		}
	}
	if known != len(n.cluster.Nodes) {
		return fmt.Errorf("the scheduler knows of %d disks", known)
	}
	return nil
}

// isUnschedulable reports whether the scheduler found no node for a pod, for want of room.
func (n *namespace) isUnschedulable(pod *corev1.Pod) error {
	if err := n.get(pod); err != nil {
		return err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return nil
		}
	}
	return fmt.Errorf("pod %s is on %q: %+v", pod.Name, pod.Spec.NodeName, pod.Status.Conditions)
}
