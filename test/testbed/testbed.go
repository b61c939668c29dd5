// Package testbed is what end-to-end tests with pods that run happen on: a Kubernetes as
// it comes, with three nodes. One is the machine itself, in namespaces of the test's own,
// and two are User Mode Linux guests.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
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

// Bed is the test bed. Its parts are there when they were made, in the order of its
// methods: Boot, StartControlPlane, Join, Load.
type Bed struct {
	Folder guests.Folder
	Guests []*guests.Node
	Plane  *controlplane.ControlPlane
	// Client is the administrator's.
	Client client.Client
	Nodes  []*kubenode.Node
}

// Boot boots the guests.
func (b *Bed) Boot(ctx context.Context) (err error) {
	b.Guests, err = guests.BootAs(ctx, b.Folder, guestCount, guests.Hardware{Memory: guestMemory, Disk: guestDisk})
	return err
}

// StartControlPlane starts it where nodes reach it, with such controllers, as
// kube-controller-manager's flag has them. A nil scheme is client-go's.
func (b *Bed) StartControlPlane(ctx context.Context, controllers string, scheme *runtime.Scheme) (err error) {
	b.Plane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: b.Folder.ControlPlane(), Address: guests.Address, Controllers: controllers,
	})
	if err != nil {
		return err
	}
	b.Client, err = client.New(b.Plane.Config, client.Options{Scheme: scheme})
	return err
}

// Nodes are what they have of a test's own: which services they can be asked for beside
// their files, which folders of the machine's they are shown at which paths, and what else
// is changed in their settings.
type Nodes struct {
	Services  func() ([]any, error)
	Folders   map[string]string
	Customize func(*kubenode.Settings)
}

// Join makes nodes of the machine and the guests, all at once.
func (b *Bed) Join(ctx context.Context, nodes Nodes) error {
	kubelet, err := controlplane.Binary("kubelet")
	if err != nil {
		return err
	}
	host, err := guests.NewMachine(b.Folder, nodes.Services)
	if err != nil {
		return err
	}
	members := []kubenode.Member{{Name: Machine, Host: host}}
	for _, guest := range b.Guests {
		members = append(members, kubenode.Member{Name: guest.Name, Host: guest})
	}
	b.Nodes, err = kubenode.Plan(ctx, kubenode.Cluster{
		Name: b.Folder.Name(), Kubelet: kubelet, Kubeconfig: b.Plane.NodeKubeconfig,
		ClientAuthority: b.Plane.KubeletClients(), Service: apiserver.ServiceAddress, Pause: Pause,
		Folders: nodes.Folders, Customize: nodes.Customize,
	}, members...)
	if err != nil {
		return err
	}
	if err := b.Plane.ServeService(apiserver.ServiceAddress); err != nil {
		return err
	}
	return b.Each((*kubenode.Node).Join)
}

// Load has each node take images: archives that `make image-archives` makes.
func (b *Bed) Load(archives ...string) error {
	return b.Each(func(node *kubenode.Node) error {
		for _, archive := range archives {
			if err := node.Import(filepath.Join(apiserver.Repository(), "bin", "images", archive)); err != nil {
				return fmt.Errorf("loading %s, which make image-archives makes: %w", archive, err)
			}
		}
		return nil
	})
}

// Each does something with all nodes at once.
func (b *Bed) Each(do func(*kubenode.Node) error) error {
	problems := make([]error, len(b.Nodes))
	var all sync.WaitGroup
	for i, node := range b.Nodes {
		all.Go(func() { problems[i] = do(node) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// Node is the node of a name; nil if there is none.
func (b *Bed) Node(name string) *kubenode.Node {
	for _, node := range b.Nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// IsReady is an error unless a node is Ready, as it says itself.
func (b *Bed) IsReady(ctx context.Context, name string) error {
	node := &corev1.Node{}
	if err := b.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%s is not Ready: %+v", name, node.Status.Conditions)
}
