package attach_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/googlenode"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// googles: disks that Google's own driver makes, attaches and mounts, on nodes without a kubelet. The test
// plays udev and node-driver-registrar.
func googles(s *spec) {
	ours := &googlenode.GoogleNode{}
	scenario.Step("the driver's Controller service runs beside the manager", func() error { return s.startGoogleController(ours) })
	scenario.Step("its node service runs on the nodes, and is registered", func() error {
		return s.eachNode(func(node *guest.Node) error {
			return errors.Join(s.callGoogle(node, "GoogleNode.ServeMetadata"), s.callDriver(node, "Prepare"), s.callDriver(node, "Start"), s.callGoogle(node, "GoogleNode.Register"))
		})
	})
	scenario.Soon(s.ctx, "the nodes' CSINodes have it", func() error { return s.eachNode(s.hasGoogleDriver) })
	scenario.Step("there are a StorageBackend and a StorageClass", func() error { return s.stowage.Create(s.ctx, googleBackend(), googleClass()) })
	scenario.Soon(s.ctx, "the StorageBackend is Ready", func() error { return s.stowage.BackendIsReady(s.ctx, googlenode.Driver) })

	var claim, device *corev1.PersistentVolumeClaim
	scenario.Step("claims are given disks, one as a device", func() (err error) {
		claim, err = s.claimFor("pd", googlenode.Driver)
		if err == nil {
			device, err = s.claimFor("pd-device", googlenode.Driver, fixture.AskingBlock())
		}
		return err
	})
	first, second := s.pod("pd-1", 1, claim), s.pod("pd-2", 2, claim)
	scenario.Step("a pod on node 1 writes", func() error { return errors.Join(s.run(first), s.writes(first, claim, "by Google's")) })
	scenario.Step("the driver is killed and started again, and the pod goes on", func() error {
		return errors.Join(s.callDriver(s.nodes[1], "Kill"), s.finds(first, claim, "by Google's"), s.callDriver(s.nodes[1], "Start"), s.finds(first, claim, "by Google's"))
	})
	scenario.Step("the claim asks for more, and the pod moves to node 2", func() error {
		err := s.stowage.Change(s.ctx, claim, func() { claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("12Gi") })
		return errors.Join(err, s.end(first), s.run(second), s.finds(second, claim, "by Google's"))
	})
	scenario.Soon(s.ctx, "it sees a file system of the new size", func() error { return s.holds(second, claim, 11*gibibyte) })
	writer, reader := s.pod("pd-writer", 1, device), s.pod("pd-reader", 2, device)
	scenario.Step("another one writes to the device, and a third one reads it", func() error {
		return errors.Join(s.run(writer), s.writesDevice(writer, device, "raw"), s.end(writer), s.run(reader), s.readsDevice(reader, device, "raw"))
	})
	scenario.Step("pods and claims go, and the disks", func() error {
		return errors.Join(s.end(second, reader), s.stowage.Delete(s.ctx, claim), s.stowage.Delete(s.ctx, device), s.diskGoes(claim), s.diskGoes(device))
	})
	scenario.Step("nothing of them is left on the nodes", func() error { return s.nothingOnNodes(1, 2) })
	scenario.Step("the driver goes", func() error {
		err := s.eachNode(func(node *guest.Node) error {
			return errors.Join(s.callGoogle(node, "GoogleNode.Stop"), s.callDriver(node, "Kill"))
		})
		return errors.Join(err, s.stowage.Delete(s.ctx, googleBackend()), s.stowage.Delete(s.ctx, googleClass()), ours.Stop(googlenode.Place{}, nil))
	})
}

// startGoogleController starts the driver's Controller service, with the metadata server of this machine.
func (s *spec) startGoogleController(ours *googlenode.GoogleNode) error {
	if err := ours.ServeMetadata(googlenode.Place{Name: "machine", Project: project, Zone: zone}, nil); err != nil {
		return err
	}
	program := cluster.NewProgram(cluster.ProgramOptions{
		Name: "gce-pd-csi-driver", LogFile: s.folder.Log("gce-pd-csi-driver"),
		Arguments:   []string{"--endpoint=unix:" + s.googleSocket(), "--run-node-service=false", "--compute-endpoint=http://" + address, "--v=5"},
		Environment: []string{"GCE_METADATA_HOST=127.0.0.1" + googlenode.MetadataPort},
	})
	return program.Start()
}

func googleSocketIn(folder string) string { return filepath.Join(folder, "csi.sock") }

func (s *spec) googleSocket() string { return googleSocketIn(s.folder.Memory()) }

func (s *spec) googleFiles(node *guest.Node) GoogleFiles {
	return GoogleFiles{
		Node: node.Name, Program: filepath.Join(apiserver.Repository(), "bin", "gce-pd-csi-driver"), Repository: apiserver.Repository(), Devices: s.cloud.devicesOf(node.Name),
	}
}

func (s *spec) callDriver(node *guest.Node, method string) error {
	return node.Call(s.ctx, "GoogleDriver."+method, s.googleFiles(node), &guest.Nothing{})
}

func (s *spec) callGoogle(node *guest.Node, method string) error {
	return node.Call(s.ctx, method, googlenode.Place{Name: node.Name, Project: project, Zone: zone, Folder: guest.AgentRoot}, &guest.Nothing{})
}

func (s *spec) eachNode(do func(*guest.Node) error) error {
	return errors.Join(do(s.nodes[1]), do(s.nodes[2]))
}

func (s *spec) hasGoogleDriver(node *guest.Node) error {
	known := &storagev1.CSINode{}
	err := s.stowage.Client.Get(s.ctx, client.ObjectKey{Name: node.Name}, known)
	if err == nil && !slices.ContainsFunc(known.Spec.Drivers, func(one storagev1.CSINodeDriver) bool { return one.Name == googlenode.Driver }) {
		err = fmt.Errorf("%s has no driver %s", node.Name, googlenode.Driver)
	}
	return err
}

func googleBackend() *stowagev1alpha1.StorageBackend {
	made := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: googlenode.Driver}}
	made.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: googlenode.Driver, Endpoint: "unix://" + googleSocketIn(shared.folder.Memory())}
	return made
}

func googleClass() *storagev1.StorageClass {
	class := fixture.Class(googlenode.Driver, googlenode.Driver, map[string]string{"type": "pd-balanced"})
	class.AllowVolumeExpansion = new(true)
	return class
}
