package cluster_test

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// ephemeral: a pod's own volume comes and goes with it.
func ephemeral(n *namespace) {
	template := n.claim(images, "16Mi").Spec
	pod := n.pod("owner", on(machine), func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: data, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: template},
		}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: data, MountPath: dataPath}}
	})
	claim := n.claim(images, "16Mi")
	claim.Name = "owner-" + data
	scenario.Step("a pod with a volume of its own runs", func() error { return n.launch(pod) })
	scenario.Step("it writes and reads", func() error { return n.says(pod.Name, "echo hello >/data/greeting && cat /data/greeting", "hello") })
	var volume *corev1.PersistentVolume
	scenario.Step("its claim is bound", func() (err error) {
		volume, err = n.volume(claim)
		return err
	})
	scenario.Step("pod, claim and volume go", func() error { return errors.Join(n.remove(pod), n.gone(claim, volume)) })
}
