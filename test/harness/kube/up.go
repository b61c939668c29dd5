package kube

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/controlplane"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// BesideIt and InsteadOfIt are the overlays: beside kube-controller-manager, and instead of
// its volume controllers.
const (
	BesideIt    = "default"
	InsteadOfIt = "standalone"
)

// Patience is how long anything may take, with many specs at once on a machine that is
// busy.
const Patience = 5 * time.Minute

const nfsPort = 2049

var archives = []string{"pause.tar", "busybox.tar", "manager.tar", "node-agent.tar"}

// Services are what every node of such a cluster serves. A suite may have more.
func Services() ([]any, error) { return []any{&kubenode.Kubernetes{}}, nil }

// Differences are what a suite wants otherwise than usual. The zero value is none.
type Differences struct {
	// Services are those of the suite's nodes. Nil: Services.
	Services func() ([]any, error)
	// Archives have further images for all nodes.
	Archives []string
	// FSType is that of images and of the machine's disks. Empty: the backends' own default.
	FSType string
}

// Up brings up a cluster with Stowage of an overlay, in steps of the spec that calls it. It
// stays up as long as this process.
func Up(ctx context.Context, folder guest.Folder, overlay string, differences Differences) *Cluster {
	ginkgo.GinkgoHelper()
	services := differences.Services
	if services == nil {
		services = Services
	}
	c := &Cluster{Folder: folder, Overlay: overlay, differences: differences}
	up := false
	defer func() {
		if !up && c.Client != nil {
			ginkgo.AddReportEntry("objects", c.Describe(context.WithoutCancel(ctx), System, "up"))
		}
	}()
	scenario.Step("an NFS server and a cloud start", func() error { return c.startStorage(ctx) })
	scenario.Step("two guests boot", func() error { return c.Boot(ctx) })
	scenario.Step("etcd, kube-apiserver, kube-controller-manager and kube-scheduler start", func() error { return c.startControlPlane(ctx) })
	scenario.Step("containerd and a kubelet start on the machine and in the guests", func() error { return c.join(ctx, services) })
	scenario.Step("all take the images", func() error { return c.load(ctx) })
	scenario.Step("all nodes are Ready", func() error {
		return c.Each(func(node *kubenode.Node) error {
			return scenario.Within(ctx, Patience, func() error { return c.IsReady(ctx, node.Name) })
		})
	})
	c.Install(ctx)
	up = true
	return c
}

// Connect is a cluster that another process of the suite has brought up. Its guests can't
// be crashed from here.
func Connect(ctx context.Context, folder guest.Folder, overlay string) (c *Cluster, err error) {
	c = &Cluster{Folder: folder, Overlay: overlay}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return nil, err
	}
	if c.Client, err = cluster.NewClient(c.Config); err != nil {
		return nil, err
	}
	if c.Share, err = guest.NewNFSServer(nfsPort, folder); err != nil {
		return nil, err
	}
	if c.Cloud, err = connectCloud(ctx, cloudPort); err != nil {
		return nil, err
	}
	if c.MachinesCloud, err = connectCloud(ctx, loopPort); err != nil {
		return nil, err
	}
	machine, err := guest.ConnectMachine(ctx, folder)
	if err != nil {
		return nil, err
	}
	c.Nodes = []*kubenode.Node{{Member: kubenode.Member{Name: Machine, Host: machine}}}
	if c.Guests, err = guest.Connect(ctx, folder, guestCount); err != nil {
		return nil, err
	}
	for _, host := range c.Guests {
		c.Nodes = append(c.Nodes, &kubenode.Node{Member: kubenode.Member{Name: host.Name, Host: host}})
	}
	return c, nil
}

func (c *Cluster) startStorage(ctx context.Context) (err error) {
	if err := errors.Join(os.Mkdir(devicesOf(c.Folder), 0o755), c.startGuestsCloud(ctx), guest.PrepareNFS(ctx)); err != nil {
		return err
	}
	if c.Share, err = guest.NewNFSServer(nfsPort, c.Folder); err != nil {
		return err
	}
	return c.Share.Start(ctx)
}

// startControlPlane starts it, without controllers of volumes where Stowage takes their
// place.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	controllers := controlplane.AllControllers
	if c.Overlay == InsteadOfIt {
		var err error
		if controllers, err = controlplane.StandaloneControllers(); err != nil {
			return err
		}
	}
	return c.StartControlPlane(ctx, controllers)
}

func (c *Cluster) join(ctx context.Context, services func() ([]any, error)) error {
	err := c.Join(ctx, services, kubenode.Cluster{Folders: map[string]string{devicesPath: devicesOf(c.Folder)}, Customize: inCloud})
	return errors.Join(err, c.startMachinesCloud(ctx))
}

// imagesVariable has the absolute paths of further archives, of a person's own images.
const imagesVariable = "STOWAGE_E2E_IMAGES"

func (c *Cluster) load(ctx context.Context) error {
	own := strings.Fields(os.Getenv(imagesVariable))
	if err := c.Load(ctx, slices.Concat(archives, c.differences.Archives, own)...); err != nil {
		return err
	}
	return c.Each(func(node *kubenode.Node) error { return node.Tag(ctx, Busybox, readmeImage) })
}
