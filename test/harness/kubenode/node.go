package kubenode

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Host is a machine that can become a node: a guest, or the machine itself.
type Host interface {
	// Call has it do something.
	Call(ctx context.Context, method string, request, answer any) error
	// CallWithin is Call for what may take longer than most does.
	CallWithin(ctx context.Context, patience time.Duration, method string, request, answer any) error
	// Address is its own in the nodes' network.
	Address() string
	// Path is where it has a file of the machine's.
	Path(machine string) string
	// Logs is where it has the folder of logs, and Disk where it has its disk.
	Logs() string
	Disk() (string, error)
}

// Cluster is what nodes join, in paths of the machine's.
type Cluster struct {
	// Name distinguishes the test's run from others on the machine: Folder.Name.
	Name string
	// Kubelet is the program, ClientAuthority the kubelets' clientCAFile, and Kubeconfig makes
	// a file with a node's credential.
	Kubelet, ClientAuthority string
	Kubeconfig               func(node string) (path string, err error)
	// Service is the address at which pods look for the API server. The machine gets it.
	Service string
	// Pause is the name of the image that holds a pod's namespaces.
	Pause string
	// Folders are those of the machine's that every node is shown, by the path at which
	// it has them, in /run or /var. They are there when nodes join.
	Folders map[string]string
	// Customize changes a node's settings. Nil: they are as usual.
	Customize func(*Settings)
}

// Member is a host that is to be a node.
type Member struct {
	Name string
	Host Host
}

// Node is a host that joined a cluster, seen from outside.
type Node struct {
	Member
	settings Settings
}

// Kernel modules that a guest's node needs: containers' file systems, pods' network,
// and volumes.
var modules = []string{"overlay", "veth", "loop", "nfs", "nfsv3", uml.NFSv4}

// Plan gives each member its settings, and has the machine find the pods of all, and
// answer for the API server. None has joined yet.
func Plan(ctx context.Context, cluster Cluster, members ...Member) ([]*Node, error) {
	if err := guest.Commands(ctx, "ip address replace "+cluster.Service+"/32 dev lo"); err != nil {
		return nil, err
	}
	hosts := map[string]string{}
	for _, member := range members {
		hosts[member.Name] = member.Host.Address()
	}
	var nodes []*Node
	for n, member := range members {
		node, err := cluster.node(n, member)
		if err != nil {
			return nil, err
		}
		node.settings.Hosts = hosts
		if cluster.Customize != nil {
			cluster.Customize(&node.settings)
		}
		if err := route(ctx, node); err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func (c Cluster) node(n int, member Member) (*Node, error) {
	host := member.Host
	disk, err := host.Disk()
	if err != nil {
		return nil, fmt.Errorf("making the disk of %s: %w", member.Name, err)
	}
	kubeconfig, err := c.Kubeconfig(member.Name)
	if err != nil {
		return nil, err
	}
	settings := Settings{
		Name: member.Name, Address: host.Address(), Disk: disk, Logs: host.Logs(),
		Kubelet: host.Path(c.Kubelet), Kubeconfig: host.Path(kubeconfig), ClientAuthority: host.Path(c.ClientAuthority),
		PodNetwork: fmt.Sprintf("10.244.%d.0/24", n), Pause: c.Pause, Cgroup: "/pods", Modules: modules,
		Folders: map[string]string{},
	}
	for path, folder := range c.Folders {
		settings.Folders[path] = host.Path(folder)
	}
	if isMachine(host) {
		settings.SharedKernel, settings.Modules, settings.Cgroup = true, nil, "/"+c.Name
	}
	return &Node{member, settings}, nil
}

func isMachine(host Host) bool { return host.Address() == guest.Address }

// route has the machine find a node's pods. Those of its own are there as they start.
func route(ctx context.Context, node *Node) error {
	if isMachine(node.Host) {
		return nil
	}
	return guest.Commands(ctx, "ip route replace "+node.settings.PodNetwork+" via "+node.settings.Address)
}

// Join makes the host a node: after each boot again.
func (n *Node) Join(ctx context.Context) error { return n.ask(ctx, "Join", n.settings) }

// Import has the node take images of an archive on the machine.
func (n *Node) Import(ctx context.Context, archive string) error {
	return n.ask(ctx, "Import", n.Host.Path(archive))
}

// Tag gives an image that the node has another name, too.
func (n *Node) Tag(ctx context.Context, image, as string) error {
	return n.ask(ctx, "Tag", Tagging{image, as})
}

// Do ends or starts a program of the node's. Containers go on.
func (n *Node) Do(ctx context.Context, what Control) error { return n.ask(ctx, "Control", what) }

func (n *Node) ask(ctx context.Context, method string, request any) error {
	if err := n.Host.CallWithin(ctx, askTimeout, "Kubernetes."+method, request, &guest.Nothing{}); err != nil {
		return fmt.Errorf("%s on %s: %w", method, n.Name, err)
	}
	return nil
}
