package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

const (
	project  = "demo"
	zone     = "europe-west3-a"
	address  = "127.0.0.1:8585"
	endpoint = "http://" + address + "/compute/v1/"
	nfsPort  = 2049
	// nodeMemory has the images of local volumes, too.
	nodeMemory = "768M"

	// repositoryVariable names the folder of the earlier commit, with its programs in bin.
	repositoryVariable = "STOWAGE_UPGRADE_FROM"
)

// testbed is what all specs share.
type testbed struct {
	folder  guest.Folder
	server  *guest.NFSServer
	cloud   *compute.Service
	node    *guest.Node
	stowage *guest.Stowage
	// staying are the pods that run during the upgrade, one for each kind of volume. The pod
	// leaving is deleted while the node has no agent, and joining is made after the upgrade.
	staying          []*pod
	leaving, joining *pod
	// mounted is the mounts of pods before the upgrade.
	mounted map[string]int
}

// boot starts everything that isn't Stowage's.
func (s *spec) boot() error {
	if err := guest.PrepareNFS(s.ctx); err != nil {
		return err
	}
	var err error
	if s.server, err = guest.NewNFSServer(nfsPort, s.folder); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(s.volumesDir(), 0o755), os.MkdirAll(s.legacyDir(), 0o777), s.server.Start(s.ctx)); err != nil {
		return err
	}
	nodes, err := guest.Boot(s.ctx, s.folder, 1, guest.Hardware{Memory: nodeMemory})
	if err != nil {
		return err
	}
	s.node = nodes[0]
	base := filepath.Join(s.folder.ControlPlane(), "disks")
	return errors.Join(s.startCloud(), s.node.Call(s.ctx, "Machine.Prepare", base, &guest.Nothing{}))
}

func (s *spec) volumesDir() string { return filepath.Join(s.server.Share(), "volumes") }

func (s *spec) legacyDir() string { return filepath.Join(s.server.Share(), "legacy") }

func (s *spec) cloudDir() string { return filepath.Join(s.folder.Memory(), "cloud") }

// startCloud starts a gce-mock whose only instance is the node.
func (s *spec) startCloud() (err error) {
	s.cloud, err = compute.NewService(context.WithoutCancel(s.ctx), option.WithEndpoint(endpoint), option.WithoutAuthentication())
	if err != nil {
		return err
	}
	return cluster.NewCloud(address, s.folder.Log("gce-mock"),
		"--folder="+s.cloudDir(), "--project="+project, "--zone="+zone, "--attach=uml", "--uml-dir="+s.folder.Memory(),
		"--latency="+(100*time.Millisecond).String(), "--instance="+zone+"/"+s.node.Name).StartReady(s.ctx)
}

// startStowage starts the earlier Stowage.
func (s *spec) startStowage() (err error) {
	s.stowage, err = guest.StartStowage(s.ctx, s.folder, []*guest.Node{s.node}, guest.Differences{
		Repository: os.Getenv(repositoryVariable),
		Register: func(node *corev1.Node) {
			node.Spec.ProviderID = "gce://" + project + "/" + zone + "/" + node.Name
			node.Labels[corev1.LabelTopologyZone] = zone
			node.Labels[corev1.LabelTopologyRegion] = zone[:strings.LastIndex(zone, "-")]
		},
		AgentFlags: func(node string) []string {
			return []string{
				"--device-dir=" + filepath.Join(uml.MachineDir, s.cloudDir(), "devices", project, zone, node),
				"--local-base=" + filepath.Join(s.folder.ControlPlane(), "disks"),
			}
		},
	})
	return err
}

// dump prints what explains a failure.
func (b *testbed) dump(ctx context.Context) {
	guest.Dump(ctx, GinkgoWriter, b.folder, b.stowage, b.node)
	if b.cloud != nil {
		attached, err := cluster.AttachedTo(ctx, b.cloud, project, zone)
		guest.DumpText(GinkgoWriter, "what the cloud has attached", fmt.Sprint(attached, " ", err))
	}
}
