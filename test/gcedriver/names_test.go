package gcedriver_test

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// withGoogleNames has csi-sanity name volumes and snapshots as Google allows: without
// capitals. The sidecars of Kubernetes do so, too. Names that are too long stay so.
func withGoogleNames(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	switch known := request.(type) {
	case *csi.CreateVolumeRequest:
		known.Name = strings.ToLower(known.GetName())
	case *csi.CreateSnapshotRequest:
		known.Name = strings.ToLower(known.GetName())
	}
	return call(ctx, method, request, answer, conn, options...)
}
