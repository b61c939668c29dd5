package controlplane

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
)

// forwarder stands for kube-proxy, of which there is none: what calls the address of the
// Service kubernetes gets the API server.
type forwarder struct {
	listener net.Listener
	target   string
	// ctx ends all connections, with stop.
	ctx  context.Context
	stop context.CancelFunc
}

// ServeService has the API server answer at the address of the Service kubernetes, such
// as apiserver.ServiceAddress, port 443, until Stop. Some network interface must have that
// address.
func (c *ControlPlane) ServeService(address string) error {
	server, err := url.Parse(c.Config.Host)
	if err != nil {
		return fmt.Errorf("reading the address of the API server: %w", err)
	}
	if c.forwarder, err = forward(net.JoinHostPort(address, "443"), server.Host); err != nil {
		return fmt.Errorf("serving the Service kubernetes: %w", err)
	}
	return nil
}

func forward(address, target string) (*forwarder, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: listener, target: target}
	f.ctx, f.stop = context.WithCancel(context.Background())
	go f.serve()
	return f, nil
}

func (f *forwarder) serve() {
	for {
		caller, err := f.listener.Accept()
		if err != nil {
			return
		}
		go f.connect(caller)
	}
}

func (f *forwarder) connect(caller net.Conn) {
	defer caller.Close()
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer server.Close()
	// The side that ends first ends both.
	ctx, end := context.WithCancel(f.ctx)
	defer end()
	for _, way := range [][2]net.Conn{{server, caller}, {caller, server}} {
		go func() {
			defer end()
			_, _ = io.Copy(way[0], way[1]) // a connection that breaks is over
		}()
	}
	<-ctx.Done()
}

func (f *forwarder) close() error {
	f.stop()
	return f.listener.Close()
}
