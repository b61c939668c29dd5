package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// ephemeral: a pod's own volume comes and goes with it.
func ephemeral(s *scene) {
	template := s.claim(images, "16Mi").Spec
	pod := s.pod("owner", on(machine), func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: data, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: template},
		}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: data, MountPath: dataPath}}
	})
	claim := s.claim(images, "16Mi")
	claim.Name = "owner-" + data
	s.Do("a pod with a volume of its own runs", func() error { return s.launch(pod) })
	s.Do("it writes and reads", func() error { return s.says(pod.Name, "echo hello >/data/greeting && cat /data/greeting", "hello") })
	var volume *corev1.PersistentVolume
	s.Do("its claim is bound", func() (err error) {
		volume, err = s.volume(claim)
		return err
	})
	s.Do("pod, claim and volume go", func() error { return errors.Join(s.remove(pod), s.gone(claim, volume)) })
}
