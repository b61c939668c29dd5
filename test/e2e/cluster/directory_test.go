package cluster_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// directory: a directory on a node's disk is made for a claim, and goes with it.
func directory(n *namespace) {
	claim := n.claim(directories, "1Gi")
	writer := n.pod("writer", with(data))
	scenario.Step("a claim waits until the scheduler has placed a pod, which runs", func() error { return n.launch(claim, writer) })
	scenario.Step("its volume is a directory on the pod's node", func() error { return n.isDirectory(claim, writer) })
	scenario.Step("the pod writes", func() error { return n.does(writer.Name, "echo hello >/data/greeting && sync") })
	scenario.Step("it goes", func() error { return n.remove(writer) })
	reader := n.pod("reader", with(data))
	scenario.Step("another one comes to where the volume is", func() error {
		if err := n.launch(reader); err != nil {
			return err
		}
		return isOn(writer.Spec.NodeName, reader)
	})
	scenario.Step("and reads", func() error { return n.says(reader.Name, "cat /data/greeting", "hello") })
}

func (n *namespace) isDirectory(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	volume, err := n.volume(claim)
	if err != nil {
		return err
	}
	local := &stowagev1alpha1.NodeVolume{}
	local.Name = volume.Spec.CSI.VolumeHandle
	if err := n.get(local); err != nil {
		return err
	}
	if local.Spec.NodeName != pod.Spec.NodeName || local.Spec.Layout != stowagev1alpha1.LayoutDirectory {
		return fmt.Errorf("the pod is on %s, and the volume is %+v", pod.Spec.NodeName, local.Spec)
	}
	return nil
}
