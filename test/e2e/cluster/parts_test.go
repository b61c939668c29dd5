package cluster_test

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// parts: containers see parts of a volume.
func parts(n *namespace) {
	claim := n.claim(images, "16Mi")
	pod := n.pod("parts", on(machine), with(data), func(spec *corev1.PodSpec) {
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: data, MountPath: "/one", SubPath: "one"}, {Name: data, MountPath: "/two", SubPath: "deep/two"},
		}
	})
	whole := n.pod("whole", with(data))
	scenario.Step("a pod sees two parts of a volume", func() error { return n.launch(claim, pod) })
	scenario.Step("it writes to both", func() error { return n.does(pod.Name, "echo 1 >/one/name && echo 2 >/two/name && sync") })
	scenario.Step("another one sees all of it", func() error {
		return errors.Join(n.launch(whole), n.says(whole.Name, "cat /data/one/name /data/deep/two/name", "1\n2"))
	})
	scenario.Step("both go", func() error { return n.remove(pod, whole) })
}

// readers: a pod that asks for a volume to read can't write to it, and others can.
func readers(n *namespace) {
	claim := n.claim(images, "16Mi")
	writer := n.pod("writer", on(machine), with(data))
	reader := n.pod("reader", with(data), func(spec *corev1.PodSpec) { spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true })
	scenario.Step("one pod has a volume to write, and one to read", func() error {
		return n.launch(claim, writer, reader)
	})
	scenario.Step("one writes and the other reads", func() error {
		return errors.Join(n.does(writer.Name, "echo hello >/data/greeting"), n.says(reader.Name, "cat /data/greeting", "hello"))
	})
	scenario.Step("the other can't write", func() error { return n.refuses(reader.Name, "echo >/data/mine", "Read-only file system") })
	scenario.Step("the first still can", func() error { return n.does(writer.Name, "echo again >/data/greeting && sync") })
}
