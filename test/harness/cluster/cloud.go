package cluster

import (
	"context"
	"fmt"
	"path"
	"strings"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"
)

// What the cloud has that runs beside the one node. Both that and the second are instances.
const (
	CloudProject = "demo"
	CloudZone    = "europe-west3-a"
	// cloudMachine is a type of machine that takes disks of all kinds.
	cloudMachine = "c3-standard-4"
)

func (c *Cluster) startCloud(ctx context.Context) error {
	log, err := c.Folder.createLog("gce-mock")
	if err != nil {
		return err
	}
	defer log.Close()
	address := fmt.Sprintf("127.0.0.1:%d", c.ports.Cloud)
	c.CloudEndpoint = "http://" + address + "/compute/v1/"
	c.Cloud = NewCloud(address, log.Name(),
		"--folder="+c.Folder.cloud(), "--device-folder="+c.Folder.path("devices"),
		"--project="+CloudProject, "--zone="+CloudZone, "--attach="+cloudAttaches(),
		"--instance="+CloudZone+"/"+NodeName+":"+cloudMachine, "--instance="+CloudZone+"/"+SecondNode+":"+cloudMachine)
	return c.Cloud.StartReady(ctx)
}

// NewCloud is a gce-mock at an address, which doesn't run yet.
func NewCloud(address, logFile string, arguments ...string) *Program {
	return NewProgram(ProgramOptions{
		Name: "gce-mock", LogFile: logFile, Ready: "http://" + address + "/_mock/healthz",
		Arguments: append([]string{"--listen=" + address}, arguments...),
	})
}

// AttachedTo is the nodes that have disks of a cloud, by disk.
func AttachedTo(ctx context.Context, cloud *compute.Service, project, zone string) (map[string][]string, error) {
	instances, err := cloud.Instances.List(project, zone).Context(ctx).Do()
	if err != nil {
		return nil, fmt.Errorf("asking the cloud what is attached: %w", err)
	}
	nodes := map[string][]string{}
	for _, instance := range instances.Items {
		for _, disk := range instance.Disks {
			name := path.Base(disk.Source)
			nodes[name] = append(nodes[name], instance.Name)
		}
	}
	return nodes, nil
}

// cloudAttaches is what attaching a disk does. In a user namespace there are no loop
// devices: there disks are attached in the API alone, and pods wait for them.
func cloudAttaches() string {
	if InsideNamespace() {
		return "none"
	}
	return "loop"
}

// inCloud makes the one node an instance of the cloud, as Google's node controller
// does with its nodes.
func inCloud(node *corev1.Node) {
	node.Spec.ProviderID = "gce://" + CloudProject + "/" + CloudZone + "/" + node.Name
	node.Labels[corev1.LabelTopologyZone] = CloudZone
	node.Labels[corev1.LabelTopologyRegion] = CloudZone[:strings.LastIndex(CloudZone, "-")]
}

func (f Folder) cloud() string { return f.path("cloud") }

// Devices is where a node finds the disks that are attached to it.
func (f Folder) Devices(node string) string {
	return f.path("devices", CloudProject, CloudZone, node)
}

// SecondNode is the name of a node that can be added to the one, for volumes that move.
const SecondNode = "stowage-second"

// secondAgent is the name of its agent, and of the agent's kubeconfig.
const secondAgent = "node-agent-second"

// StartSecond adds a node to the cluster, another instance of the cloud, with an agent
// of its own on this machine: it shares the kernel with the first, and nothing else.
func (c *Cluster) StartSecond(ctx context.Context) (err error) {
	if err := c.registerNode(ctx, SecondNode); err != nil {
		return fmt.Errorf("registering node %s: %w", SecondNode, err)
	}
	if c.Second, err = c.newAgent(secondAgent, SecondNode); err != nil {
		return err
	}
	return c.Second.StartReady(ctx)
}
