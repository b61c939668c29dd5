package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/googlenode"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// googleOverlay is config/default with the driver beside the managers, and on the guests.
	googleOverlay = "csi-driver"
	// googleNamespace is that of the driver's DaemonSet.
	googleNamespace = "gce-pd-csi-driver"
	googleDriver    = googlenode.Driver
)

// hasGoogleDriver reports whether there is the driver's image, which CSI=yes builds, and the
// overlay beside which it is installed.
func hasGoogleDriver() bool { return os.Getenv("STOWAGE_E2E_CSI") != "" && overlay() == kube.BesideIt }

// googleArchives are the further images that nodes need.
func googleArchives() []string {
	if hasGoogleDriver() {
		return []string{"gce-pd-csi-driver.tar"}
	}
	return nil
}

// googlesDriver: a pod on a stock kubelet uses a disk made by Google's own driver through Stowage
// alone, without any sidecar.
func googlesDriver(n *namespace) {
	n.installDriver()
	claim, one, two := n.claim("pd", "10Gi"), n.pod("one", on(node1), with(data)), n.pod("two", on(node2), with(data))
	scenario.Step("a pod runs on node1", func() error { return n.launch(claim, one) })
	scenario.Step("it writes", func() error { return n.does(one.Name, "echo hello >/data/greeting && sync") })
	scenario.Step("the disk is attached to node1 alone", func() error { return n.isAttachedTo(claim, node1) })
	scenario.Step("its volume is the driver's", func() error { return n.isGoogles(claim) })
	scenario.Step("the pod goes, and the claim asks for more", func() error { return errors.Join(n.remove(one), n.grow(claim, "12Gi")) })
	n.Soon("the disk is larger", func() error {
		disk, err := n.cluster.Cloud.Disks.Get(kube.Project, kube.Zone, diskOf(claim)).Context(n.ctx).Do()
		if err == nil && disk.SizeGb != 12 {
			err = fmt.Errorf("it has %d GB", disk.SizeGb)
		}
		return err
	})
	scenario.Step("a pod on node2 reads", func() error {
		return errors.Join(n.launch(two), n.says(two.Name, "cat /data/greeting", "hello"))
	})
	scenario.Step("the disk is attached to node2 alone", func() error { return n.isAttachedTo(claim, node2) })
	n.Soon("claim and volume have the new size, with nothing left to be done", func() error { return n.hasGrown(claim, "12Gi") })
	scenario.Step("the pod sees it", func() error { return n.hasRoom(two, 11<<10) })

	device := n.claim("pd", "10Gi", fixture.AskingBlock(), fixture.ClaimNamed("device"))
	writer, reader := n.pod("writer", on(node2), withDevice(device.Name)), n.pod("reader", on(node1), withDevice(device.Name))
	scenario.Step("a pod has another one as a device of exactly its size", func() error {
		return errors.Join(n.launch(device, writer), n.hasDevice(writer, 10<<30))
	})
	n.writtenAndRead(writer, reader)
	scenario.Step("pods and claims go", func() error { return n.remove(two, reader, claim, device) })
	n.Soon("and the disks", func() error { return errors.Join(n.hasNoDisk(claim), n.hasNoDisk(device)) })
	n.uninstallDriver()
}

func (n *namespace) installDriver() {
	scenario.Step("nodes have what Google's have for the driver", func() error {
		return n.cluster.Each(func(node *kubenode.Node) error { return n.callGoogleNode(node, "ServeMetadata") })
	})
	scenario.Step("the driver is put beside the managers as docs/start/csi.md says, and on the guests", func() error {
		n.cluster.Overlay = googleOverlay
		return n.cluster.Apply(n.ctx)
	})
	n.Soon("the managers are Ready", func() error { return n.cluster.ManagersAreReady(n.ctx) })
	n.Soon("the driver runs on the guests", n.driverRuns)
	scenario.Step("it is registered there", func() error {
		return n.cluster.Each(func(node *kubenode.Node) error {
			if node.Name == machine {
				return nil
			}
			return errors.Join(n.callGoogleNode(node, "Register"), n.soon(func() error { return n.hasGoogleDriver(node) }))
		})
	})
	class := fixture.Class("pd", googleDriver, map[string]string{"type": "pd-balanced"})
	class.AllowVolumeExpansion, class.VolumeBindingMode = ptr.To(true), ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	scenario.Step("there are a StorageBackend and a StorageClass", func() error { return n.create(n.googleBackend(), class) })
	n.Soon("the StorageBackend is Ready", func() error { return n.cluster.BackendsAreReady(n.ctx) })
}

// uninstallDriver leaves the cluster as it was.
func (n *namespace) uninstallDriver() {
	scenario.Step("StorageBackend and StorageClass go", func() error {
		return n.remove(n.googleBackend(), fixture.Class("pd", googleDriver, nil))
	})
	scenario.Step("the driver goes", func() error {
		n.cluster.Overlay = overlay()
		gone := &corev1.Namespace{}
		gone.Name = googleNamespace
		driver := &storagev1.CSIDriver{}
		driver.Name = googleDriver
		return errors.Join(n.cluster.Apply(n.ctx), n.remove(driver, gone))
	})
	scenario.Step("and so does what nodes had for it", func() error {
		return n.cluster.Each(func(node *kubenode.Node) error { return n.callGoogleNode(node, "Stop") })
	})
	n.Soon("the managers are Ready", func() error { return n.cluster.ManagersAreReady(n.ctx) })
}

func (n *namespace) callGoogleNode(node *kubenode.Node, method string) error {
	return node.Host.Call(n.ctx, "GoogleNode."+method, googlenode.Place{Name: node.Name, Project: kube.Project, Zone: kube.Zone, Folder: kubeletDir}, &guest.Nothing{})
}

func (n *namespace) googleBackend() client.Object {
	made := &stowagev1alpha1.StorageBackend{}
	made.Name = googleDriver
	made.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: googleDriver, Endpoint: "unix:///csi/csi.sock"}
	return made
}

func (n *namespace) driverRuns() error {
	set := &appsv1.DaemonSet{}
	err := n.cluster.Client.Get(n.ctx, client.ObjectKey{Namespace: googleNamespace, Name: "csi-gce-pd-node"}, set)
	if err == nil && set.Status.NumberReady != 2 {
		err = fmt.Errorf("it is Ready on %d of two guests", set.Status.NumberReady)
	}
	return err
}

func (n *namespace) hasGoogleDriver(node *kubenode.Node) error {
	known := &storagev1.CSINode{}
	err := n.cluster.Client.Get(n.ctx, client.ObjectKey{Name: node.Name}, known)
	if err == nil && !slices.ContainsFunc(known.Spec.Drivers, func(one storagev1.CSINodeDriver) bool { return one.Name == googleDriver }) {
		err = fmt.Errorf("%s has no driver %s", node.Name, googleDriver)
	}
	return err
}

// isGoogles checks that a volume is one as the driver's own sidecars would have made it.
func (n *namespace) isGoogles(claim *corev1.PersistentVolumeClaim) error {
	pv, err := n.volume(claim)
	if err != nil {
		return err
	}
	handle := "projects/" + kube.Project + "/zones/" + kube.Zone + "/disks/" + diskOf(claim)
	if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != googleDriver || pv.Spec.CSI.VolumeHandle != handle {
		return fmt.Errorf("it is %+v", pv.Spec)
	}
	return nil
}
