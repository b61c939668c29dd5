package cluster_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/kubenode"
)

// kubeletDir is every kubelet's folder.
const kubeletDir = "/var/lib/kubelet"

// watchMounts looks on nodes that run at the mounts of writers' volumes, those once for all
// of a node's pods and those of each pod, until ended is called, which fails if any of them
// changed.
func (n *namespace) watchMounts(nodes []*kubenode.Node, all ...*writers) (ended func() error, err error) {
	var paths []string
	for _, w := range all {
		for i, pod := range w.pods {
			volume, err := n.volume(w.claims[i])
			if err != nil {
				return nil, err
			}
			paths = append(paths, stagingPath(volume), kubeletDir+"/pods/"+string(pod.UID)+"/volumes/kubernetes.io~csi")
		}
	}
	mounted := 0
	for _, node := range nodes {
		count := 0
		if err := node.Host.Call(n.ctx, "Mounts.Begin", Below{n.name, paths}, &count); err != nil {
			return nil, err
		}
		mounted += count
	}
	if mounted < len(paths) {
		return nil, fmt.Errorf("%d mounts are there, and not %d", mounted, len(paths))
	}
	return func() error { return atOnce(nodes, n.mountsStayed) }, nil
}

func (n *namespace) mountsStayed(node *kubenode.Node) error {
	var changes []string
	if err := node.Host.Call(n.ctx, "Mounts.End", n.name, &changes); err != nil {
		return err
	}
	if len(changes) > 0 {
		return fmt.Errorf("mounts of %s changed:\n%s", node.Name, strings.Join(changes, "\n"))
	}
	return nil
}

// isNowhereOn checks that a node has a claim's volume neither mounted nor remembered.
func (n *namespace) isNowhereOn(node string, claim *corev1.PersistentVolumeClaim) error {
	volume, err := n.volume(claim)
	if err != nil {
		return err
	}
	var mounts, names []string
	host, path := n.cluster.Node(node).Host, stagingPath(volume)
	if err := errors.Join(host.Call(n.ctx, "Files.Mounts", path, &mounts), host.Call(n.ctx, "Files.List", path, &names)); err != nil {
		return err
	}
	if len(mounts) > 0 || len(names) > 0 {
		return fmt.Errorf("%s has %q and %q mounted at %s", node, names, mounts, path)
	}
	return nil
}

// stagingPath is where kubelets have a volume mounted for all pods of a node.
func stagingPath(volume *corev1.PersistentVolume) string {
	csi := volume.Spec.CSI
	return fmt.Sprintf("%s/plugins/kubernetes.io/csi/%s/%x", kubeletDir, csi.Driver, sha256.Sum256([]byte(csi.VolumeHandle)))
}
