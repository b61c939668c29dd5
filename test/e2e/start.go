package main

import (
	"errors"
	"os"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
	"github.com/stowage-dev/stowage/test/story"
	"github.com/stowage-dev/stowage/test/testbed"
)

// Names of nodes, and of the image of pods.
const (
	machine = testbed.Machine
	node1   = testbed.Node1
	node2   = testbed.Node2
	busybox = testbed.Busybox
)

// nfsPort is where NFS is served.
const nfsPort = 2049

// archives have the images.
var archives = []string{"pause.tar", "busybox.tar", "manager.tar", "node-agent.tar"}

// start starts a cluster without Stowage, and what storage there is around it.
func (b *bed) start() {
	s := b.story
	s.Chapter("A stock Kubernetes")
	s.Do("an NFS server and a cloud start", b.startStorage)
	s.Do("two guests boot", func() error { return b.Boot(s.Ctx) })
	s.Do("etcd, kube-apiserver, kube-controller-manager and kube-scheduler start", b.startControlPlane)
	s.Do("containerd and a kubelet start on the machine and in the guests", b.join)
	s.Do("all take the images", b.load)
	s.Do("all nodes are Ready", func() error {
		return b.Each(func(node *kubenode.Node) error {
			return story.Within(s.Ctx, patience, func() error { return b.IsReady(b.story.Ctx, node.Name) })
		})
	})
}

func (b *bed) startStorage() (err error) {
	ctx := b.story.Ctx
	if err := errors.Join(os.Mkdir(devicesOf(b.Folder), 0o755), b.startGuestsCloud(), guests.PrepareNFS(ctx)); err != nil {
		return err
	}
	if b.share, err = guests.NewNFSServer(nfsPort, b.Folder); err != nil {
		return err
	}
	return b.share.Start(ctx)
}

// startControlPlane starts it, without controllers of volumes where Stowage takes their
// place.
func (b *bed) startControlPlane() error {
	scheme, err := program.Scheme()
	if err != nil {
		return err
	}
	controllers := controlplane.AllControllers
	if b.overlay == insteadOfIt {
		if controllers, err = controlplane.StandaloneControllers(); err != nil {
			return err
		}
	}
	return b.StartControlPlane(b.story.Ctx, controllers, scheme)
}

// join makes nodes of the machine and the guests, each in a cloud.
func (b *bed) join() error {
	err := b.Join(b.story.Ctx, testbed.Nodes{
		Services: services, Folders: map[string]string{devicesPath: devicesOf(b.Folder)}, Customize: inCloud,
	})
	return errors.Join(err, b.startMachinesCloud())
}

// load has each node take the images.
func (b *bed) load() error {
	if err := b.Load(archives...); err != nil {
		return err
	}
	return b.Each(func(node *kubenode.Node) error { return node.Tag(busybox, itsImage) })
}
