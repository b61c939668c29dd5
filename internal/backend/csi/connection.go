package csi

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
	"github.com/stowage-dev/stowage/internal/backend/csi/secured"
)

// maxAnswer bounds an answer of a driver, in bytes: a page of a list is the longest.
const maxAnswer = 4 << 20

// connections has one connection for each backend, which all of its calls share.
type connections struct {
	calls  *measured.Calls
	mu     sync.Mutex
	opened map[string]*connection
}

// connection is to one program at one endpoint, with one certificate. It is never made again: another
// program may serve the endpoint then, and what is known of the driver is known of that program alone.
type connection struct {
	grpc *grpc.ClientConn
	// made names what the connection was made for: another endpoint or certificate needs another.
	made string
	// dialed: the driver has accepted the connection once.
	dialed atomic.Bool

	mu sync.Mutex
	// known are the driver's abilities; nil before they were asked for.
	known *abilities
}

func newConnections(calls *measured.Calls) *connections {
	return &connections{calls: calls, opened: map[string]*connection{}}
}

// to returns the connection of a backend. It dials nothing yet. After a connection has ended, and for a
// changed endpoint or certificate, it is another one. That ends calls by the earlier one: their outcome
// is unknown, and they are repeated.
func (c *connections) to(ctx context.Context, cluster Cluster, spec settings) (*connection, error) {
	secured, certificate, err := credentialsOf(ctx, cluster, spec)
	if err != nil {
		return nil, err
	}
	made := spec.target + " " + certificate
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := c.opened[spec.backend]
	if earlier != nil && earlier.made == made && !earlier.isOver() {
		return earlier, nil
	}
	opened := &connection{made: made}
	opened.grpc, err = grpc.NewClient(spec.target,
		grpc.WithTransportCredentials(secured), grpc.WithContextDialer(opened.dial), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithNoProxy(), grpc.WithUnaryInterceptor(c.calls.Of(spec.Driver)))
	if err != nil {
		return nil, backend.Invalid.Errorf("csi.endpoint %s can't be used: %w", spec.Endpoint, err)
	}
	if earlier != nil {
		_ = earlier.grpc.Close()
	}
	c.opened[spec.backend] = opened
	return opened, nil
}

// forget ends the connection of a backend that is gone.
func (c *connections) forget(backend string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier := c.opened[backend]; earlier != nil {
		_ = earlier.grpc.Close()
		delete(c.opened, backend)
	}
}

// credentialsOf returns how a connection is secured, and what distinguishes its certificates.
func credentialsOf(ctx context.Context, cluster Cluster, spec settings) (credentials.TransportCredentials, string, error) {
	if spec.TLSSecret == nil {
		return insecure.NewCredentials(), "", nil
	}
	data, err := cluster.Secret(ctx, spec.TLSSecret.Name)
	if err != nil {
		return nil, "", err
	}
	return secured.From(data, spec.TLSSecret.Name, spec.Endpoint)
}

// dial connects to the driver, once.
func (c *connection) dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, isSocket := strings.CutPrefix(address, unixScheme); isSocket {
		network, address = "unix", path
	}
	connected, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if !c.dialed.CompareAndSwap(false, true) {
		_ = connected.Close()
		return nil, errOver
	}
	return connected, nil
}

// errOver is the error of a call by a connection that is over. No driver has seen the call.
var errOver = errors.New("the connection has ended, and the call was not made")

// isOver reports whether a connection was made, and is no more.
func (c *connection) isOver() bool {
	switch c.grpc.GetState() {
	case connectivity.Ready, connectivity.Connecting:
		return false
	default:
		return c.dialed.Load()
	}
}

func (c *connection) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = nil
}
