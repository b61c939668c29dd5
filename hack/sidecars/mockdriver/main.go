// Command csi-mock-driver serves the CSI driver of Kubernetes' own end-to-end tests, which holds its volumes in memory.
// `make test-sidecars` and `make bench` start it: it is the only thing here that isn't the driver itself. It corrects
// one answer: for a volume that is restored or copied, the driver names the place of the source in its list, and not
// the source's id.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

func main() {
	socket := flag.String("socket", "", "path of the socket")
	name := flag.String("driver-name", "", "name of the driver, which is also the id of its only node")
	topology := flag.Bool("topology", true, "whether its node has a topology")
	flag.Parse()
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		log.Fatal(err)
	}
	driver, server := mock{service.New(service.Config{DriverName: *name, EnableTopology: *topology})}, grpc.NewServer()
	csi.RegisterIdentityServer(server, driver)
	csi.RegisterControllerServer(server, driver)
	log.Fatal(server.Serve(listener))
}

// mock is the driver with its answers corrected.
type mock struct{ service.Service }

// CreateVolume names the source of the request as that of a volume that has one.
func (m mock) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	answer, err := m.Service.CreateVolume(ctx, request)
	if made := answer.GetVolume().GetContentSource().GetSnapshot(); made != nil && request.GetVolumeContentSource().GetSnapshot() != nil {
		made.SnapshotId = request.GetVolumeContentSource().GetSnapshot().GetSnapshotId()
	}
	if made := answer.GetVolume().GetContentSource().GetVolume(); made != nil && request.GetVolumeContentSource().GetVolume() != nil {
		made.VolumeId = request.GetVolumeContentSource().GetVolume().GetVolumeId()
	}
	return answer, err
}
