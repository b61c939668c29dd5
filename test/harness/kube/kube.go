// Package kube is the cluster of end-to-end tests with pods that run: a Kubernetes as it
// comes, with three nodes, storage around it, and Stowage. One node is the machine itself,
// in namespaces of the test's own, and two are User Mode Linux guests.
//
// Up brings up all of it, in the process that keeps it up; Connect gives it to others. A
// suite of the nodes alone calls Boot, StartControlPlane, Join and Load.
package kube

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/controlplane"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
)

// Names of nodes, of images as hack/images gives them, and hardware of guests. The machine
// is the fastest node by far: pods that need no guest are best there.
const (
	Machine = "machine"
	Node1   = "node1"
	Node2   = "node2"

	Pause   = "localhost/stowage-pause:e2e"
	Busybox = "localhost/stowage-busybox:e2e"

	guestCount  = 2
	guestMemory = "1536M"
	guestDisk   = 8 << 30
)

// Cluster is the cluster. Its parts are there when they were made.
type Cluster struct {
	Folder guest.Folder
	// Overlay is the folder of config/ from which Stowage is installed.
	Overlay string
	Guests  []*guest.Node
	// Plane is nil in processes that have connected.
	Plane *controlplane.ControlPlane
	// Config and Client are the administrator's.
	Config *rest.Config
	Client client.Client
	Nodes  []*kubenode.Node
	// Share is the NFS server. Cloud has disks for guests, MachinesCloud for the machine.
	Share                *guest.NFSServer
	Cloud, MachinesCloud *Cloud

	differences Differences
}

// Boot boots the guests.
func (c *Cluster) Boot(ctx context.Context) (err error) {
	c.Guests, err = guest.Boot(ctx, c.Folder, guestCount, guest.Hardware{Memory: guestMemory, Disk: guestDisk})
	return err
}

// StartControlPlane starts it where nodes reach it, with such controllers, as
// kube-controller-manager's flag has them.
func (c *Cluster) StartControlPlane(ctx context.Context, controllers string) (err error) {
	c.Plane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: c.Folder.ControlPlane(), Address: guest.Address, Controllers: controllers,
	})
	if err != nil {
		return err
	}
	c.Config = c.Plane.Config
	c.Client, err = cluster.NewClient(c.Config)
	return err
}

// Join makes nodes of the machine and the guests, all at once. Services are what they can be
// asked for beside their files. Of own only Folders and Customize are set.
func (c *Cluster) Join(ctx context.Context, services func() ([]any, error), own kubenode.Cluster) error {
	kubelet, err := apiserver.Binary("kubelet")
	if err != nil {
		return err
	}
	host, err := guest.ServeMachine(ctx, c.Folder, services)
	if err != nil {
		return err
	}
	members := []kubenode.Member{{Name: Machine, Host: host}}
	for _, host := range c.Guests {
		members = append(members, kubenode.Member{Name: host.Name, Host: host})
	}
	c.Nodes, err = kubenode.Plan(ctx, kubenode.Cluster{
		Name: c.Folder.Name(), Kubelet: kubelet, Kubeconfig: c.Plane.NodeKubeconfig,
		ClientAuthority: c.Plane.KubeletClients(), Service: apiserver.ServiceAddress, Pause: Pause,
		Folders: own.Folders, Customize: own.Customize,
	}, members...)
	if err != nil {
		return err
	}
	return c.Each(func(node *kubenode.Node) error { return node.Join(ctx) })
}

// Load has each node take images: archives that `make image-archives` makes, by their names,
// or others, by absolute paths.
func (c *Cluster) Load(ctx context.Context, archives ...string) error {
	return c.Each(func(node *kubenode.Node) error {
		for _, archive := range archives {
			path := archive
			if !filepath.IsAbs(path) {
				path = filepath.Join(apiserver.Repository(), "bin", "images", archive)
			}
			if err := node.Import(ctx, path); err != nil {
				return fmt.Errorf("loading images from %s: %w", path, err)
			}
		}
		return nil
	})
}

// Each does something with all nodes at once.
func (c *Cluster) Each(do func(*kubenode.Node) error) error {
	problems := make([]error, len(c.Nodes))
	var all sync.WaitGroup
	for i, node := range c.Nodes {
		all.Go(func() { problems[i] = do(node) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// Node is the node of a name; nil if there is none.
func (c *Cluster) Node(name string) *kubenode.Node {
	return find(c.Nodes, func(node *kubenode.Node) bool { return node.Name == name })
}

// Guest is the guest of a name; nil if there is none.
func (c *Cluster) Guest(name string) *guest.Node {
	return find(c.Guests, func(host *guest.Node) bool { return host.Name == name })
}

func find[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// IsReady is an error unless a node is Ready, as it says itself.
func (c *Cluster) IsReady(ctx context.Context, name string) error {
	node := &corev1.Node{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%s is not Ready: %+v", name, node.Status.Conditions)
}
