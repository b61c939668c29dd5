package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// data is what pods call their volume, and where they see it.
const (
	data     = "data"
	dataPath = "/data"
	// devicePath is where pods see it if it is a block device.
	devicePath = "/dev/data"
)

// pod is one that sleeps until a command is run in it.
func (n *namespace) pod(name string, options ...func(*corev1.PodSpec)) *corev1.Pod {
	var soon int64 = 1
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &soon,
			Containers: []corev1.Container{{
				Name: "shell", Image: busybox, Command: []string{"sh", "-c", "trap exit TERM; sleep 1000000 & wait"},
			}},
		},
	}
	for _, option := range options {
		option(&made.Spec)
	}
	return made
}

// on has a pod scheduled to a node.
func on(node string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) { pod.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// with gives a pod a claim at dataPath.
func with(claim string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		addClaim(pod, claim)
		shell := &pod.Containers[0]
		shell.VolumeMounts = append(shell.VolumeMounts, corev1.VolumeMount{Name: data, MountPath: dataPath})
	}
}

// withDevice gives a pod a claim, of volumeMode Block, at devicePath.
func withDevice(claim string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		addClaim(pod, claim)
		shell := &pod.Containers[0]
		shell.VolumeDevices = append(shell.VolumeDevices, corev1.VolumeDevice{Name: data, DevicePath: devicePath})
	}
}

func addClaim(pod *corev1.PodSpec, claim string) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: data, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}

// launch creates objects, and waits until all pods among them run.
func (n *namespace) launch(objects ...client.Object) error {
	if err := n.create(objects...); err != nil {
		return err
	}
	for _, object := range objects {
		pod, isPod := object.(*corev1.Pod)
		if !isPod {
			continue
		}
		if err := n.soon(func() error { return n.runs(pod) }); err != nil {
			return err
		}
	}
	return nil
}

// runs reports whether a pod runs.
func (n *namespace) runs(pod *corev1.Pod) error {
	if err := n.get(pod); err != nil {
		return err
	}
	statuses := pod.Status.ContainerStatuses
	if pod.Status.Phase != corev1.PodRunning || len(statuses) == 0 || statuses[0].State.Running == nil {
		return fmt.Errorf("pod %s on %q is %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
	}
	return nil
}

// isOn checks where pods are.
func isOn(node string, pods ...*corev1.Pod) error {
	var problems []error
	for _, pod := range pods {
		if pod.Spec.NodeName != node {
			problems = append(problems, fmt.Errorf("pod %s is on %s, not on %s", pod.Name, pod.Spec.NodeName, node))
		}
	}
	return errors.Join(problems...)
}
