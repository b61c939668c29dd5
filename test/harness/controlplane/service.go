package controlplane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
)

// forwarder stands for kube-proxy, of which there is none: who calls the address of the
// Service kubernetes gets the API server.
type forwarder struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
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
	f := &forwarder{listener: listener, target: target, open: map[net.Conn]struct{}{}}
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
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		caller.Close()
		return
	}
	if !f.keep(caller, server) {
		return
	}
	// Whoever ends first ends both.
	var once sync.Once
	end := func() { once.Do(func() { f.drop(caller, server) }) }
	for _, way := range [][2]net.Conn{{server, caller}, {caller, server}} {
		go func() {
			defer end()
			_, _ = io.Copy(way[0], way[1]) // a connection that breaks is over
		}()
	}
}

// keep remembers connections, so that close ends them; it ends them itself where it is
// too late.
func (f *forwarder) keep(both ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, connection := range both {
		if f.closed {
			connection.Close()
		} else {
			f.open[connection] = struct{}{}
		}
	}
	return !f.closed
}

func (f *forwarder) drop(both ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, connection := range both {
		connection.Close()
		delete(f.open, connection)
	}
}

func (f *forwarder) close() error {
	err := f.listener.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for connection := range f.open {
		connection.Close()
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
