package kube

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// System is Stowage's own namespace.
const System = "stowage-system"

// Install installs Stowage as users do, and gives it storage.
func (c *Cluster) Install(ctx context.Context) {
	ginkgo.GinkgoHelper()
	soon := func(what string, try func(context.Context) error) {
		ginkgo.GinkgoHelper()
		scenario.Step(what, func() error { return scenario.Within(ctx, Patience, func() error { return try(ctx) }) })
	}
	scenario.Step("Stowage is installed from config/"+c.Overlay+", with what README has people type", func() error { return c.deploy(ctx) })
	soon("the Deployment of managers is Ready", c.ManagersAreReady)
	soon("the DaemonSet of node agents is Ready on all nodes", c.AgentsAreReady)
	soon("the kubelets have registered the drivers", c.AllHaveDrivers)
	scenario.Step("a StorageBackend is made of each kind", func() error { return c.createBackends(ctx) })
	soon("all are Ready", c.BackendsAreReady)
}

// deploy installs Stowage as README says. It ends when all programs are Ready.
func (c *Cluster) deploy(ctx context.Context) error {
	install, _, err := QuickStart()
	if err == nil {
		_, err = c.Type(ctx, install)
	}
	return err
}

func (c *Cluster) manifests(ctx context.Context) (string, error) {
	folder := filepath.Join(apiserver.Repository(), "test", "e2e", "manifests", c.Overlay)
	return Run(ctx, "", filepath.Join(apiserver.Repository(), "bin", "kustomize"), "build", folder)
}

// Apply installs Stowage from the overlay that the cluster has by now.
func (c *Cluster) Apply(ctx context.Context) error {
	all, err := c.manifests(ctx)
	if err == nil {
		_, err = c.Kubectl(ctx, all, "apply", "--server-side", "--filename=-")
	}
	return err
}

// ManagersAreReady reports whether all managers are up to date and available.
func (c *Cluster) ManagersAreReady(ctx context.Context) error {
	manager := &appsv1.Deployment{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: System, Name: "stowage-manager"}, manager)
	status := manager.Status
	if err == nil && (status.ObservedGeneration < manager.Generation || status.UpdatedReplicas < *manager.Spec.Replicas ||
		status.AvailableReplicas != *manager.Spec.Replicas) {
		err = fmt.Errorf("of %d managers %d are Ready: %+v", *manager.Spec.Replicas, status.ReadyReplicas, status.Conditions)
	}
	return err
}

// AgentsAreReady reports whether an agent that is up to date is Ready on each node.
func (c *Cluster) AgentsAreReady(ctx context.Context) error {
	agents := &appsv1.DaemonSet{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: System, Name: "stowage-node-agent"}, agents)
	status := agents.Status
	if err == nil && (status.ObservedGeneration < agents.Generation || status.UpdatedNumberScheduled < int32(len(c.Nodes)) ||
		status.NumberReady != int32(len(c.Nodes))) {
		err = fmt.Errorf("agents are Ready on %d of %d nodes", status.NumberReady, len(c.Nodes))
	}
	return err
}

// AllHaveDrivers is HasDrivers of all nodes.
func (c *Cluster) AllHaveDrivers(ctx context.Context) error {
	return c.Each(func(node *kubenode.Node) error { return c.HasDrivers(ctx, node) })
}

// HasDrivers reports whether the scheduler knows that a node has the drivers.
func (c *Cluster) HasDrivers(ctx context.Context, node *kubenode.Node) error {
	known := &storagev1.CSINode{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: node.Name}, known); err != nil {
		return err
	}
	for _, driver := range []string{stowagev1alpha1.NFSDriver, stowagev1alpha1.LocalDriver, stowagev1alpha1.GCEDriver} {
		has := func(one storagev1.CSINodeDriver) bool { return one.Name == driver }
		if !slices.ContainsFunc(known.Spec.Drivers, has) {
			return fmt.Errorf("%s has no driver %s", node.Name, driver)
		}
	}
	return nil
}

func (c *Cluster) createBackends(ctx context.Context) error {
	var problems []error
	for _, backend := range c.Backends() {
		problems = append(problems, c.Client.Create(ctx, backend))
	}
	return errors.Join(problems...)
}

// BackendsAreReady reports whether all backends are Ready, and know the disks of nodes.
func (c *Cluster) BackendsAreReady(ctx context.Context) error {
	all := &stowagev1alpha1.StorageBackendList{}
	if err := c.Client.List(ctx, all); err != nil {
		return err
	}
	for _, backend := range all.Items {
		ready := meta.FindStatusCondition(backend.Status.Conditions, stowagev1alpha1.ReadyCondition)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("backend %s isn't Ready: %+v", backend.Name, backend.Status.Conditions)
		}
	}
	return c.Each(func(node *kubenode.Node) error { return c.knowsDisks(ctx, node) })
}

func (c *Cluster) knowsDisks(ctx context.Context, node *kubenode.Node) error {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := c.Client.List(ctx, disks); err != nil {
		return err
	}
	known := 0
	for _, disk := range disks.Items {
		if disk.Spec.NodeName == node.Name && disk.Status.Available != nil {
			known++
		}
	}
	if known < 2 {
		return fmt.Errorf("%d disks of %s are known", known, node.Name)
	}
	return nil
}

// Base is the folder of each node below which local volumes lie.
const Base = "/var/lib/stowage/"

// Backends, and the classes that they keep.
const (
	Directories = "directories"
	Images      = "images"
	Shared      = "shared"
	// Disks are of the guests' cloud, and MachineDisks of the machine's.
	Disks        = "disks"
	MachineDisks = "machine-disks"
)

// Backends are those that all specs share.
func (c *Cluster) Backends() []client.Object {
	share := &stowagev1alpha1.NFSBackend{
		Server: guest.Address, Path: stowagev1alpha1.AbsolutePath(c.Share.Share()), NFSVersion: "4.1", AllowInline: true,
		MountOptions: []stowagev1alpha1.MountOption{
			stowagev1alpha1.MountOption(c.Share.PortOption()), stowagev1alpha1.MountOption(c.Share.MountdOption()),
		},
	}
	return []client.Object{
		Backend(Directories, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{Path: Base + Directories}}),
		Backend(Images, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{
			Path: Base + Images, Layout: stowagev1alpha1.LayoutImage, FSType: c.differences.FSType,
		}}),
		Backend(Shared, stowagev1alpha1.StorageBackendSpec{NFS: share}),
		disksAt(Disks, cloudPort, ""), disksAt(MachineDisks, loopPort, c.differences.FSType),
	}
}

func disksAt(name, port string, fsType string) client.Object {
	return Backend(name, stowagev1alpha1.StorageBackendSpec{GCE: &stowagev1alpha1.GCEBackend{
		Project: Project, Zones: []string{Zone}, Endpoint: endpointAt(port) + "/compute/v1/", FSType: fsType,
		ClassParameters: []stowagev1alpha1.GCEClassParameter{stowagev1alpha1.GCETypeParameter},
	}})
}

// Backend is one that keeps a class of its own name, whose volumes may grow.
func Backend(name string, spec stowagev1alpha1.StorageBackendSpec) *stowagev1alpha1.StorageBackend {
	made := &stowagev1alpha1.StorageBackend{Spec: spec}
	made.Name = name
	made.Spec.StorageClass = &stowagev1alpha1.StorageClassTemplate{AllowVolumeExpansion: true}
	return made
}
