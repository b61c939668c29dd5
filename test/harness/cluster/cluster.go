// Package cluster runs a whole Stowage on one machine, with all its state under
// one folder: etcd, kube-apiserver, gce-mock, the manager and a node agent that
// follows the pods of one registered node, which is an instance of that cloud.
// `make run` and `make demo` use it; end-to-end tests do without the cloud and
// with nodes that are machines of their own, whose agents they start.
//
// The programs are the real ones, with the real rights: the manager is its
// service account, bounded by config/rbac, and the agent is its node. There is
// no scheduler, no kubelet and no container runtime: a pod runs nothing, but
// its volumes are mounted.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

const (
	// NodeName is the one node's. The pods of config/samples name it.
	NodeName = "stowage-local"
	// Namespace is that of the manager's identity and lease.
	Namespace = "stowage-system"

	// readyTimeout covers a lease that a killed manager left behind, and a program whose file a slow disk reads.
	readyTimeout = 3 * time.Minute
)

// Options say how a cluster is started.
type Options struct {
	// Dir is the folder that holds everything. It is made if it is not there.
	Dir string
	// Address that the API server listens on. Empty: 127.0.0.1.
	Address string
	// Nodes that are machines of their own, where others start the agents: they
	// are registered, and each has a kubeconfig of its name. None: one node,
	// NodeName, whose agent runs here.
	Nodes []string
	// Register completes a node before it is registered, as a cloud does. Nil: nothing
	// is to be added.
	Register func(*corev1.Node)
	// Repository is the one whose config/run is applied, and whose bin has the manager and the
	// agents. Empty: this one.
	Repository string
	// ManagerFlags are further flags of the manager.
	ManagerFlags []string
	// Step is called as each step of the start begins; what it returns is
	// called when the step ends.
	Step func(what string) (done func(error))
}

// Cluster is a running one.
type Cluster struct {
	Folder Folder
	// Config and Client are those of an administrator.
	Config *rest.Config
	Client client.WithWatch
	// Manager, Agent and Cloud can be killed and started again. The agent and the cloud
	// are there where the one node is. Second is the agent of the second node.
	Manager, Agent, Cloud, Second *Program
	// CloudEndpoint is the URL of the cloud's Compute API.
	CloudEndpoint string

	address, repository string

	nodes    []string
	register func(*corev1.Node)
	// managerFlags are those of the Options.
	managerFlags []string
	ports        ports
	server       *apiserver.Server
	lock         *os.File
}

// Start starts a cluster, or continues the one that the folder holds. What it
// started before an error is stopped again.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	folder, err := NewFolder(options.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Folder: folder, address: options.Address, nodes: options.Nodes, register: options.Register, managerFlags: options.ManagerFlags,
		repository: cmp.Or(options.Repository, apiserver.Repository()),
	}
	if c.lock, err = folder.Lock(); err != nil {
		return nil, err
	}
	for _, step := range c.steps() {
		done := options.Step(step.what)
		err := step.do(ctx)
		done(err)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", step.what, err), c.Stop(context.WithoutCancel(ctx)))
		}
	}
	return c, nil
}

// PrintStep is an Options.Step for a terminal: it prints a step as it begins, and how long
// it took when it ends.
func PrintStep(what string) (done func(error)) {
	started := time.Now()
	fmt.Printf("  %-45s", what)
	return func(err error) {
		if err != nil {
			fmt.Println(" failed")
			return
		}
		fmt.Printf(" %4.1f s\n", time.Since(started).Seconds())
	}
}

type step struct {
	what string
	do   func(context.Context) error
}

func (c *Cluster) steps() []step {
	steps := []step{
		{"starting etcd and kube-apiserver", c.startServer},
		{"applying config/run: CRDs, roles, drivers", c.applyConfig},
	}
	if len(c.nodes) > 0 {
		return append(steps,
			step{"registering nodes " + strings.Join(c.nodes, ", "), c.registerNodes},
			step{"starting the manager", c.startManager})
	}
	if c.register == nil {
		c.register = inCloud
	}
	return append(steps,
		step{"starting gce-mock, a cloud to try", c.startCloud},
		step{"registering node " + NodeName, func(ctx context.Context) error { return c.registerNode(ctx, NodeName) }},
		step{"starting the manager", c.startManager},
		step{"starting the node agent", c.startAgent})
}

func (c *Cluster) startServer(context.Context) error {
	var err error
	if c.ports, err = c.Folder.ports(); err != nil {
		return err
	}
	log, err := c.Folder.createLog("control-plane")
	if err != nil {
		return err
	}
	defer log.Close()
	c.server, err = apiserver.Start(apiserver.Options{
		DataDir: c.Folder.path("etcd"), CertDir: c.Folder.path("certificates"),
		Address: c.address, Port: c.ports.APIServer, EtcdPort: c.ports.Etcd,
		Output: log, WithoutCRDs: true, WatchCache: true,
	})
	if err != nil {
		return fmt.Errorf("%w; see %s", err, log.Name())
	}
	c.Config = c.server.Config
	if c.Client, err = NewClient(c.Config); err != nil {
		return err
	}
	return c.writeKubeconfigs()
}

// NewClient is a client that knows all kinds of objects that Stowage does.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// Programs are those that were started, the API server's apart.
func (c *Cluster) Programs() []*Program {
	return slices.DeleteFunc([]*Program{c.Manager, c.Agent, c.Second, c.Cloud}, func(program *Program) bool { return program == nil })
}

// PodDir is where the node agent mounts the volumes of a pod.
func (c *Cluster) PodDir(pod *corev1.Pod) string {
	return filepath.Join(c.Folder.AgentRoot(pod.Spec.NodeName), "pods", string(pod.UID), "volumes")
}

// Stop unmounts all volumes and stops everything. The state stays. The context is
// one that the end of the program doesn't end.
func (c *Cluster) Stop(ctx context.Context) error {
	return errors.Join(
		c.Agent.Stop(), c.Second.Stop(),
		// After the agents: they would mount them again.
		c.Folder.unmountVolumes(ctx),
		c.Manager.Stop(), c.Cloud.Stop(),
		// Once no program plugs them in again.
		c.Folder.detachDisks(ctx),
		c.server.Stop(), c.lock.Close(),
	)
}
