// Package nfs3 speaks NFS version 3 (RFC 1813) to a server, without a mount and without privileges.
// That is what the manager needs to make and remove directories.
//
// A Client belongs to one server. It opens a tree.Dir with a connection of its own, which goes back
// to the client when the Dir is closed. Every call has a deadline and ends with its context. An
// invalid reply is an error, never a panic. It never follows a symlink: it looks names up one by
// one.
package nfs3

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"
)

// idleTimeout is how long a connection waits to be used again.
const idleTimeout = 30 * time.Second

// Options of a Client.
type Options struct {
	// Port of NFS, and of mountd. Zero: rpcbind is asked.
	Port      int
	MountPort int
	// CallTimeout is how long the server may take to answer a call.
	CallTimeout time.Duration
}

// Client reaches the shares of one server. Its methods can be called by several
// goroutines at once; it holds as many connections as it was used at once.
type Client struct {
	host    string
	options Options

	mu sync.Mutex
	// idle are connections that wait, the longest waiting first.
	idle []*idleConn
	// roots are the handles that mountd gave.
	roots map[string][]byte
}

type idleConn struct {
	*conn
	expiry *time.Timer
}

// NewClient makes a client of a server. Nothing is sent yet.
func NewClient(host string, options Options) *Client {
	return &Client{host: host, options: options, roots: map[string][]byte{}}
}

func (c *Client) handle(path string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	handle, remembered := c.roots[path]
	return handle, remembered
}

func (c *Client) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.roots, path)
}

// connect dials the server's NFS port.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	port := c.options.Port
	if port == 0 {
		found, err := c.portOf(ctx, nfs)
		if err != nil {
			return nil, err
		}
		port = found
	}
	return dial(ctx, net.JoinHostPort(c.host, strconv.Itoa(port)), c.options.CallTimeout)
}

// popIdle returns the connection that waited least, or nil.
func (c *Client) popIdle() *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	last := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	last.expiry.Stop()
	return last.conn
}

// keepIdle keeps a connection for the next session.
func (c *Client) keepIdle(connection *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := &idleConn{conn: connection}
	waiting.expiry = time.AfterFunc(idleTimeout, func() { c.expire(waiting) })
	c.idle = append(c.idle, waiting)
}

func (c *Client) expire(waiting *idleConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.idle {
		if other == waiting {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			waiting.Close()
			return
		}
	}
}

// Close closes the connections that wait.
func (c *Client) Close() {
	for connection := c.popIdle(); connection != nil; connection = c.popIdle() {
		connection.Close()
	}
}
