package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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

	cloudAddress = guests.Address + ":8585"
	endpoint     = "http://" + cloudAddress + "/compute/v1/"
	latency      = "300ms"
)

// cloud is gce-mock, whose instances are the guests: no cloud plugs a disk into the
// machine itself.
type cloud struct {
	*cluster.Program
	*compute.Service
	folder string
}

// newCloud prepares it, with what nodes are to be shown.
func newCloud(ctx context.Context, folder guests.Folder, instances ...string) (*cloud, error) {
	program, err := cluster.ProgramPath("gce-mock")
	if err != nil {
		return nil, err
	}
	c := &cloud{folder: filepath.Join(folder.Memory(), "cloud")}
	arguments := []string{
		"--listen=" + cloudAddress, "--folder=" + c.folder, "--project=" + project, "--zone=" + zone,
		"--attach=uml", "--uml-dir=" + folder.Memory(), "--latency=" + latency, "--log-level=1",
	}
	for _, instance := range instances {
		arguments = append(arguments, "--instance="+zone+"/"+instance)
	}
	c.Program = cluster.NewProgram(cluster.ProgramOptions{
		Name: "gce-mock", Path: program, LogFile: folder.Log("gce-mock"), Arguments: arguments,
		Ready: "http://" + cloudAddress + "/_mock/healthz",
	})
	c.Service, err = compute.NewService(ctx, option.WithEndpoint(endpoint), option.WithoutAuthentication())
	return c, errors.Join(err, os.MkdirAll(c.devices(), 0o755))
}

// devices is where the machine has what nodes are shown.
func (c *cloud) devices() string { return filepath.Join(c.folder, "devices") }

// inCloud makes a node an instance, as a cloud's own controllers do.
func inCloud(settings *kubenode.Settings) {
	if settings.SharedKernel {
		return
	}
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
