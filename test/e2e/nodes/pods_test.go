package nodes_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// pod runs a shell's script on a node. A pod has an empty directory at /data.
func pod(name, node, script string) *corev1.Pod {
	var soon int64 = 1
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name + "-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &soon,
			Containers: []corev1.Container{{
				Name: "shell", Image: kube.Busybox, Command: []string{"sh", "-c", script},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// mounter is a pod that may mount, and whose mounts in a folder of the node the node sees.
func mounter(node, folder, script string) *corev1.Pod {
	made := pod("mounter", node, script)
	may, propagation, kind := true, corev1.MountPropagationBidirectional, corev1.HostPathDirectoryOrCreate
	shell := &made.Spec.Containers[0]
	shell.SecurityContext = &corev1.SecurityContext{Privileged: &may}
	shell.VolumeMounts = append(shell.VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: folder, MountPropagation: &propagation})
	made.Spec.Volumes = append(made.Spec.Volumes, corev1.Volume{
		Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &kind}},
	})
	return made
}

// run creates pods, and waits until they run.
func (s *spec) run(pods ...*corev1.Pod) error {
	for _, pod := range pods {
		err := scenario.Eventually(s.ctx, func() error { return s.Client.Create(s.ctx, pod.DeepCopy()) })
		if err != nil {
			return err
		}
	}
	for _, pod := range pods {
		if err := scenario.Eventually(s.ctx, func() error { return s.runs(pod) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *spec) runs(pod *corev1.Pod) error {
	if err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	statuses := pod.Status.ContainerStatuses
	if pod.Status.Phase != corev1.PodRunning || len(statuses) == 0 || statuses[0].State.Running == nil {
		return fmt.Errorf("pod %s is %s: %+v", pod.Name, pod.Status.Phase, statuses)
	}
	return nil
}

// end deletes pods, and waits until they are gone.
func (s *spec) end(pods ...*corev1.Pod) error {
	for _, pod := range pods {
		if err := s.Client.Delete(s.ctx, pod); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		err := scenario.Eventually(s.ctx, func() error {
			err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(pod), pod)
			if err == nil {
				return fmt.Errorf("pod %s is there", pod.Name)
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// says checks what a command in a pod prints.
func (s *spec) says(pod *corev1.Pod, want string, command ...string) error {
	got, err := s.kubectl(append([]string{"exec", pod.Name, "--"}, command...)...)
	if err == nil && strings.TrimSpace(got) != want {
		err = fmt.Errorf("%s in %s prints %q, not %q", strings.Join(command, " "), pod.Name, got, want)
	}
	return err
}

// kubectl is the administrator's.
func (s *spec) kubectl(arguments ...string) (string, error) {
	return s.Kubectl(s.ctx, "", arguments...)
}
