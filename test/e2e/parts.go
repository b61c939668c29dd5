package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// parts: containers see parts of a volume.
func parts(s *scene) {
	claim := s.claim(images, "16Mi")
	pod := s.pod("parts", on(machine), with(data), func(spec *corev1.PodSpec) {
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: data, MountPath: "/one", SubPath: "one"}, {Name: data, MountPath: "/two", SubPath: "deep/two"},
		}
	})
	whole := s.pod("whole", with(data))
	s.Do("a pod sees two parts of a volume", func() error { return s.launch(claim, pod) })
	s.Do("it writes to both", func() error { return s.does(pod.Name, "echo 1 >/one/name && echo 2 >/two/name && sync") })
	s.Do("another one sees all of it", func() error {
		return errors.Join(s.launch(whole), s.says(whole.Name, "cat /data/one/name /data/deep/two/name", "1\n2"))
	})
	s.Do("both go", func() error { return s.remove(pod, whole) })
}

// readers: a pod that asks for a volume to read can't write to it, and others can.
func readers(s *scene) {
	claim := s.claim(images, "16Mi")
	writer := s.pod("writer", on(machine), with(data))
	reader := s.pod("reader", with(data), func(spec *corev1.PodSpec) { spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true })
	s.Do("one pod has a volume to write, and one to read", func() error {
		return s.launch(claim, writer, reader)
	})
	s.Do("one writes and the other reads", func() error {
		return errors.Join(s.does(writer.Name, "echo hello >/data/greeting"), s.says(reader.Name, "cat /data/greeting", "hello"))
	})
	s.Do("the other can't write", func() error { return s.refuses(reader.Name, "echo >/data/mine", "Read-only file system") })
	s.Do("the first still can", func() error { return s.does(writer.Name, "echo again >/data/greeting && sync") })
}
