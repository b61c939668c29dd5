package attach_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

const nodes = 2

// testbed is what all specs share.
type testbed struct {
	folder  guest.Folder
	cloud   *cloud
	watcher *watcher
	nodes   [nodes + 1]*guest.Node
	stowage *guest.Stowage
	// shared are the paths of disks that two nodes may write.
	shared []string
	// data is the claim of most specs, and spare one of the hasty backend.
	data, spare *corev1.PersistentVolumeClaim
}

// boot starts the cloud and the nodes.
func (s *spec) boot() error {
	booted, err := guest.Boot(s.ctx, s.folder, nodes, guest.Hardware{})
	if err != nil {
		return err
	}
	var names []string
	for i, node := range booted {
		s.nodes[i+1] = node
		names = append(names, node.Name)
	}
	s.cloud, err = newCloud(s.ctx, s.folder, names...)
	return err
}

// startStowage starts all of it, on nodes that are instances of the cloud.
func (s *spec) startStowage() (err error) {
	s.stowage, err = guest.StartStowage(s.ctx, s.folder, s.nodes[1:], guest.Differences{
		Register: func(node *corev1.Node) {
			node.Spec.ProviderID = "gce://" + project + "/" + zone + "/" + node.Name
			node.Labels[corev1.LabelTopologyZone] = zone
			node.Labels[corev1.LabelTopologyRegion] = zone[:strings.LastIndex(zone, "-")]
		},
		AgentFlags: func(node string) []string {
			return []string{"--device-dir=" + filepath.Join(uml.MachineDir, s.cloud.devicesOf(node))}
		},
	})
	return err
}

// dump prints what explains a failure.
func (b *testbed) dump(ctx context.Context) {
	guest.Dump(ctx, GinkgoWriter, b.folder, b.stowage, b.nodes[1:]...)
	if b.cloud != nil {
		attached, err := b.cloud.attachedTo(ctx)
		guest.DumpText(GinkgoWriter, "what the cloud has attached", fmt.Sprint(attached, " ", err))
	}
}
