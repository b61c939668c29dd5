package cluster_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	someUser  int64 = 1000
	someGroup int64 = 2000
)

// asUser runs a pod as a user other than root, with an fsGroup.
func asUser(pod *corev1.PodSpec) {
	user, group, isNot := someUser, someGroup, true
	pod.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user, RunAsGroup: &user, FSGroup: &group, RunAsNonRoot: &isNot}
}

// owners: pods that aren't root can write to what has their fsGroup.
func owners(n *namespace) {
	for _, class := range []string{directories, images, shared, machineDisks} {
		node := machine
		if class == shared {
			node = node2 // the machine's kernel has no NFS
		}
		claim := n.claim(class, "16Mi")
		claim.Name = class
		pod := n.pod(class, asUser, on(node), with(class))
		scenario.Step("a pod that isn't root runs with one of "+class, func() error { return n.launch(claim, pod) })
		scenario.Step("it writes, and what it writes is its group's", func() error {
			return n.says(pod.Name, "echo hello >/data/greeting && stat -c '%u %g' /data/greeting", "1000 2000")
		})
	}
}
