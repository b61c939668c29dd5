package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// nodeUsingDisk is a cluster with a node that uses a disk which no pod wants any more, and
// with a backend that does not force by time.
func nodeUsingDisk() (*nodeWorld, *corev1.PersistentVolume, *corev1.Node) {
	GinkgoHelper()
	w := newNodeWorld()
	_, pv, node := cloudedIn(w.world, forcing("Never"))
	update(w.world, node, func(node *corev1.Node) { node.Annotations = map[string]string{attach.ManagedAnnotation: "true"} })
	pod := Pod("user", "node-1", "data")
	w.create(pod)
	w.settle()
	w.uses(node, volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle))
	w.delete(pod)
	return w, pv, node
}
