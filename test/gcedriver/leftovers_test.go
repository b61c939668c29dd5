package gcedriver_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
)

// leavesNothing checks that the cloud has no disk, snapshot or attachment left.
func (b *testbed) leavesNothing() {
	b.Helper()
	text, err := os.ReadFile(b.path("cloud.crt"))
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	service, err := compute.NewService(b.Context(), option.WithEndpoint(b.cloud+"/compute/v1/"), option.WithHTTPClient(client))
	if err != nil {
		b.Fatal(err)
	}
	disks, err := service.Disks.AggregatedList(project).Do()
	if err != nil {
		b.Fatal(err)
	}
	for _, here := range disks.Items {
		for _, disk := range here.Disks {
			b.Errorf("disk %s is left", disk.SelfLink)
		}
	}
	snapshots, err := service.Snapshots.List(project).Do()
	if err != nil {
		b.Fatal(err)
	}
	for _, snapshot := range snapshots.Items {
		b.Errorf("snapshot %s is left", snapshot.SelfLink)
	}
	instance, err := service.Instances.Get(project, zone, node).Do()
	if err != nil || len(instance.Disks) > 0 {
		b.Errorf("the node has the disks %+v: %v", instance, err)
	}
}
