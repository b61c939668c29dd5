package demo_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// secondPod: data outlives a pod.
func secondPod(s *scenario) {
	var point mount.Point
	first := &corev1.Pod{}

	s.do(func() error { return s.get("writer", first) })
	volume := "pvc-" + string(s.claim("data").UID)
	s.kubectl("delete", "pod/writer", "--wait=false")
	s.check("the pod is gone", "pod/writer", s.isGone("writer", &corev1.Pod{}))
	s.check("its volume is unmounted", "nodevolume/"+volume, nothingMountedBelow(s.cluster.PodDir(first)))
	s.check("the data is still on the disk", "nodevolume/"+volume, s.greets(s.onDisk(volume)))
	s.say("A second pod with the same claim:")
	s.apply("pod.yaml", values{"NAME": "reader", "CLAIM": "data"})
	s.check("the volume is mounted for it", "pod/reader", s.mounted("reader", volume, &point))
	s.check("it sees what the first pod wrote", "pod/reader",
		func() error { return s.greets(point.Path)() })
}
