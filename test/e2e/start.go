package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
	"github.com/stowage-dev/stowage/test/story"
)

// Names of nodes and images, hardware of guests, and where NFS is served. The machine is
// the fastest node by far: pods that need no guest are there.
const (
	machine = "machine"
	node1   = "node1"
	node2   = "node2"

	pause   = "localhost/stowage-pause:e2e"
	busybox = "localhost/stowage-busybox:e2e"

	guestMemory = "1536M"
	guestDisk   = 8 << 30
	nfsPort     = 2049
)

// archives have the images.
var archives = []string{"pause.tar", "busybox.tar", "manager.tar", "node-agent.tar"}

// start starts a cluster without Stowage, and what storage there is around it.
func (b *bed) start() {
	s := b.story
	s.Chapter("A stock Kubernetes")
	s.Do("an NFS server and a cloud start", b.startStorage)
	s.Do("two guests boot", b.boot)
	s.Do("etcd, kube-apiserver, kube-controller-manager and kube-scheduler start", b.startControlPlane)
	s.Do("containerd and a kubelet start on the machine and in the guests", b.join)
	s.Do("all take the images", b.load)
	s.Do("all nodes are Ready", func() error {
		return b.each(func(node *kubenode.Node) error {
			return story.Within(s.Ctx, patience, func() error { return b.isReady(node.Name) })
		})
	})
}

func (b *bed) startStorage() (err error) {
	ctx := b.story.Ctx
	if err := errors.Join(os.Mkdir(devicesOf(b.folder), 0o755), b.startGuestsCloud(), guests.PrepareNFS(ctx)); err != nil {
		return err
	}
	if b.share, err = guests.NewNFSServer(nfsPort, b.folder); err != nil {
		return err
	}
	return b.share.Start(ctx)
}

func (b *bed) boot() (err error) {
	b.guests, err = guests.BootAs(b.story.Ctx, b.folder, 2, guests.Hardware{Memory: guestMemory, Disk: guestDisk})
	return err
}

// startControlPlane starts it where nodes reach it.
func (b *bed) startControlPlane() (err error) {
	options := controlplane.Options{Dir: b.folder.ControlPlane(), Address: guests.Address}
	if b.overlay == "standalone" {
		if options.Controllers, err = controlplane.StandaloneControllers(); err != nil {
			return err
		}
	}
	if b.plane, err = controlplane.Start(b.story.Ctx, options); err != nil {
		return err
	}
	return b.connect()
}

// join makes nodes of the machine and the guests, all at once.
func (b *bed) join() error {
	kubelet, err := controlplane.Binary("kubelet")
	if err != nil {
		return err
	}
	host, err := guests.NewMachine(b.folder, services)
	if err != nil {
		return err
	}
	members := []kubenode.Member{{Name: machine, Host: host}}
	for _, guest := range b.guests {
		members = append(members, kubenode.Member{Name: guest.Name, Host: guest})
	}
	b.nodes, err = kubenode.Plan(b.story.Ctx, kubenode.Cluster{
		Name: b.folder.Name(), Kubelet: kubelet, Kubeconfig: b.plane.NodeKubeconfig,
		ClientAuthority: b.plane.KubeletClients(), Service: apiserver.ServiceAddress, Pause: pause,
		Folders: map[string]string{devicesPath: devicesOf(b.folder)}, Customize: inCloud,
	}, members...)
	if err != nil {
		return err
	}
	if err := b.plane.ServeService(apiserver.ServiceAddress); err != nil {
		return err
	}
	return errors.Join(b.each((*kubenode.Node).Join), b.startMachinesCloud())
}

// load has each node take the images.
func (b *bed) load() error {
	return b.each(func(node *kubenode.Node) error {
		for _, archive := range archives {
			path := filepath.Join(apiserver.Repository(), "bin", "images", archive)
			if _, err := os.Stat(path); err != nil {
				return fmt.Errorf("finding an image (make image-archives makes it): %w", err)
			}
			if err := node.Import(path); err != nil {
				return err
			}
		}
		return node.Tag(busybox, itsImage)
	})
}

// isReady says whether a node is Ready, as it says itself.
func (b *bed) isReady(name string) error {
	node := &corev1.Node{}
	if err := b.client.Get(b.story.Ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%s is not Ready: %+v", name, node.Status.Conditions)
}
