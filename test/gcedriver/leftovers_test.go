package gcedriver_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"slices"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
)

// client is one that trusts the cloud.
func (b *testbed) client() *http.Client {
	b.Helper()
	text, err := os.ReadFile(b.path("cloud.crt"))
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

func (b *testbed) compute() *compute.Service {
	b.Helper()
	service, err := compute.NewService(b.Context(), option.WithEndpoint(b.cloud+"/compute/v1/"), option.WithHTTPClient(b.client()))
	if err != nil {
		b.Fatal(err)
	}
	return service
}

// disks are all that the cloud has, in zones and regions.
func (b *testbed) disks() (all []*compute.Disk) {
	b.Helper()
	listed, err := b.compute().Disks.AggregatedList(project).Do()
	if err != nil {
		b.Fatal(err)
	}
	for _, here := range listed.Items {
		all = append(all, here.Disks...)
	}
	return all
}

// hasDisk reports whether the cloud has a disk.
func (b *testbed) hasDisk(name string) bool {
	b.Helper()
	return slices.ContainsFunc(b.disks(), func(disk *compute.Disk) bool { return disk.Name == name })
}

// leavesNothing checks that the cloud has no disk, snapshot or attachment left.
func (b *testbed) leavesNothing() {
	b.Helper()
	for _, disk := range b.disks() {
		b.Errorf("disk %s is left", disk.SelfLink)
	}
	snapshots, err := b.compute().Snapshots.List(project).Do()
	if err != nil {
		b.Fatal(err)
	}
	for _, snapshot := range snapshots.Items {
		b.Errorf("snapshot %s is left", snapshot.SelfLink)
	}
	for _, name := range []string{node, otherNode} {
		instance, err := b.compute().Instances.Get(project, zone, name).Do()
		if err != nil || len(instance.Disks) > 0 {
			b.Errorf("node %s has the disks %+v: %v", name, instance, err)
		}
	}
}
