// Package socket calls CSI drivers of other projects by their sockets, on a node without a kubelet.
// Its Driver is a drivers.Foreign: the volume type for csi volumes calls it as it calls Stowage's own
// drivers. Registered has those that package plugins found.
//
// It reads from the API server what a kubelet reads for a call: the CSIDriver, secrets and tokens.
// It mounts nothing itself, and believes no answer that the mount table contradicts.
package socket

import (
	"context"
	"fmt"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
	"github.com/stowage-dev/stowage/internal/ownership"
)

const (
	// callTimeout bounds a call, as a kubelet bounds it.
	callTimeout = 2 * time.Minute
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 10
)

// Cluster reads what calls need from the API server, with the node's rights.
type Cluster interface {
	// CSIDriver returns the object of a driver; nil if there is none.
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	// SecretData returns the content of a secret.
	SecretData(ctx context.Context, reference corev1.SecretReference) (map[string]string, error)
	// IssuedToken returns a token of the pod's service account that is bound to the pod.
	IssuedToken(ctx context.Context, pod *corev1.Pod, request storagev1.TokenRequest) (authenticationv1.TokenRequestStatus, error)
}

// Tabler reads the mount table.
type Tabler interface {
	Table() (mount.Table, error)
}

// Options are what a Driver needs beside its socket.
type Options struct {
	// Cluster reads from the API server.
	Cluster Cluster
	// Mounts reads the mount table.
	Mounts Tabler
	// Owner knows the SELinux labels of pods.
	Owner ownership.Owner
	// CallTimeout bounds a call; 0: two minutes.
	CallTimeout time.Duration
}

// Driver is a driver behind one socket. After the driver has restarted, another Driver is for it.
type Driver struct {
	Options
	name       string
	connection *grpc.ClientConn
	node       csispec.NodeClient
}

var _ drivers.Foreign = &Driver{}

// New returns the driver of the given name, whose socket lies at a path. It calls nothing yet.
func New(name, endpoint string, options Options) (*Driver, error) {
	connection, err := plugins.Dial(endpoint, maxAnswer)
	if err != nil {
		return nil, err
	}
	if options.CallTimeout == 0 {
		options.CallTimeout = callTimeout
	}
	return &Driver{Options: options, name: name, connection: connection, node: csispec.NewNodeClient(connection)}, nil
}

// Name implements drivers.Driver.
func (d *Driver) Name() string { return d.name }

// Close ends calls that still wait. Their outcome is unknown, and they are repeated.
func (d *Driver) Close() error { return d.connection.Close() }

// Check implements drivers.Driver. A driver that isn't asked says nothing: what is missing is found
// by the mount table.
func (*Driver) Check(context.Context, string, string) error { return nil }

// abilities are what a driver can do. They are read for each operation, as a kubelet does: a driver
// that restarted may have others.
type abilities struct {
	stage, expand, stats, group, singleWriters bool
}

func (d *Driver) abilities(ctx context.Context) (abilities, error) {
	answer, err := d.node.NodeGetCapabilities(ctx, &csispec.NodeGetCapabilitiesRequest{})
	if err != nil {
		return abilities{}, d.errorOf("NodeGetCapabilities", err)
	}
	var can abilities
	for _, capability := range answer.GetCapabilities() {
		switch capability.GetRpc().GetType() {
		case csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME:
			can.stage = true
		case csispec.NodeServiceCapability_RPC_EXPAND_VOLUME:
			can.expand = true
		case csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS:
			can.stats = true
		case csispec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP:
			can.group = true
		case csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
			can.singleWriters = true
		default:
		}
	}
	return can, nil
}

// object returns the CSIDriver of the driver; an empty one, with the defaults of the API, if there is
// none.
func (d *Driver) object(ctx context.Context) (storagev1.CSIDriverSpec, error) {
	object, err := d.Cluster.CSIDriver(ctx, d.name)
	if err != nil {
		return storagev1.CSIDriverSpec{}, fmt.Errorf("reading CSIDriver %s: %w", d.name, err)
	}
	if object == nil {
		return storagev1.CSIDriverSpec{}, nil
	}
	return object.Spec, nil
}
