package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/stowage-dev/stowage/test/cluster"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
)

// What there is in the cloud, as the manifests of the test bed say it, too.
const (
	project = "example-project"
	zone    = "europe-west3-a"
	region  = "europe-west3"
	// devicesPath is where nodes find what the cloud knows of their disks.
	devicesPath = "/run/stowage-cloud"

	latency = "300ms"

	// cloudPort is that of the cloud whose disks are plugged into guests. A guest's kernel
	// doesn't see them grow.
	cloudPort = "8585"
	// loopPort is that of another one, whose disks are loop devices of the machine. They
	// must lie on the machine's own disk, with which they go.
	loopPort, loopFolder = "8586", "/var/lib/cloud"
)

func endpointAt(port string) string { return "http://" + guests.Address + ":" + port }

// cloud is gce-mock, whose instances are nodes.
type cloud struct {
	*cluster.Program
	*compute.Service
}

// startCloud starts a cloud at a port, with instances.
func startCloud(ctx context.Context, folder guests.Folder, port string, arguments ...string) (*cloud, error) {
	program, err := cluster.ProgramPath("gce-mock")
	if err != nil {
		return nil, err
	}
	c := &cloud{}
	c.Program = cluster.NewProgram(cluster.ProgramOptions{
		Name: "gce-mock", Path: program, LogFile: folder.Log("gce-mock-" + port), Ready: endpointAt(port) + "/_mock/healthz",
		Arguments: append([]string{
			"--listen=" + guests.Address + ":" + port, "--device-folder=" + devicesOf(folder),
			"--project=" + project, "--zone=" + zone, "--latency=" + latency, "--log-level=1",
		}, arguments...),
	})
	if err := c.Start(); err != nil {
		return nil, err
	}
	c.Service, err = compute.NewService(ctx, option.WithEndpoint(endpointAt(port)+"/compute/v1/"), option.WithoutAuthentication())
	return c, errors.Join(err, c.AwaitReady(ctx))
}

// startGuestsCloud starts the one of the guests.
func (b *bed) startGuestsCloud() (err error) {
	b.cloud, err = startCloud(b.story.Ctx, b.Folder, cloudPort, "--folder="+filepath.Join(b.Folder.Memory(), "cloud"),
		"--attach=uml", "--uml-dir="+b.Folder.Memory(), "--instance="+zone+"/"+node1, "--instance="+zone+"/"+node2)
	return err
}

// startMachinesCloud starts that of the machine, which has its disk by then.
func (b *bed) startMachinesCloud() (err error) {
	b.machinesCloud, err = startCloud(b.story.Ctx, b.Folder, loopPort, "--folder="+loopFolder,
		"--attach=loop", "--instance="+zone+"/"+machine)
	return err
}

// devicesOf is where the machine has what nodes are shown of their devices.
func devicesOf(folder guests.Folder) string { return filepath.Join(folder.Memory(), "devices") }

// inCloud makes a node an instance, as a cloud's own controllers do.
func inCloud(settings *kubenode.Settings) {
	settings.ProviderID = "gce://" + project + "/" + zone + "/" + settings.Name
	settings.Labels = map[string]string{"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region}
}

// attachedTo is the nodes that have disks, by disk.
func (c *cloud) attachedTo(ctx context.Context) (map[string][]string, error) {
	instances, err := c.Instances.List(project, zone).Context(ctx).Do()
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
