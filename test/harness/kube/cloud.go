package kube

import (
	"context"
	"path/filepath"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
)

// Project and Zone are those of both clouds, as the manifests of the testbed say, too.
const (
	Project = "example-project"
	Zone    = "europe-west3-a"
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
	// machineType is that of the machine there: one for persistent disks and for Hyperdisks.
	machineType = "n2-standard-2"
)

func endpointAt(port string) string { return "http://" + guest.Address + ":" + port }

// Cloud is gce-mock, whose instances are nodes. The program is nil in processes that have
// connected.
type Cloud struct {
	*cluster.Program
	*compute.Service
}

// startCloud starts a cloud at a port, with instances.
func startCloud(ctx context.Context, folder guest.Folder, port string, arguments ...string) (*Cloud, error) {
	c, err := connectCloud(ctx, port)
	if err != nil {
		return nil, err
	}
	c.Program = cluster.NewCloud(guest.Address+":"+port, folder.Log("gce-mock-"+port), append(arguments,
		"--device-folder="+devicesOf(folder), "--project="+Project, "--zone="+Zone, "--latency="+latency, "--log-level=1")...)
	err = c.StartReady(ctx)
	return c, err
}

// connectCloud is a cloud that runs, or will, at a port.
func connectCloud(ctx context.Context, port string) (*Cloud, error) {
	endpoint := option.WithEndpoint(endpointAt(port) + "/compute/v1/")
	service, err := compute.NewService(context.WithoutCancel(ctx), endpoint, option.WithoutAuthentication())
	return &Cloud{Service: service}, err
}

// startGuestsCloud starts the one of the guests.
func (c *Cluster) startGuestsCloud(ctx context.Context) (err error) {
	c.Cloud, err = startCloud(ctx, c.Folder, cloudPort, "--folder="+filepath.Join(c.Folder.Memory(), "cloud"),
		"--attach=uml", "--uml-dir="+c.Folder.Memory(), "--instance="+Zone+"/"+Node1, "--instance="+Zone+"/"+Node2)
	return err
}

// startMachinesCloud starts that of the machine, which has its disk by then.
func (c *Cluster) startMachinesCloud(ctx context.Context) (err error) {
	c.MachinesCloud, err = startCloud(ctx, c.Folder, loopPort, "--folder="+loopFolder,
		"--attach=loop", "--instance="+Zone+"/"+Machine+":"+machineType)
	return err
}

// devicesOf is where the machine has what nodes are shown of their devices.
func devicesOf(folder guest.Folder) string { return filepath.Join(folder.Memory(), "devices") }

// inCloud makes a node an instance, as a cloud's own controllers do.
func inCloud(settings *kubenode.Settings) {
	settings.ProviderID = "gce://" + Project + "/" + Zone + "/" + settings.Name
	settings.Labels = map[string]string{"topology.kubernetes.io/zone": Zone, "topology.kubernetes.io/region": region}
}

// AttachedTo is the nodes that have disks, by disk.
func (c *Cloud) AttachedTo(ctx context.Context) (map[string][]string, error) {
	return cluster.AttachedTo(ctx, c.Service, Project, Zone)
}
