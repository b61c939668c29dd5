package nfs3

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"
)

const (
	// maxReply is more than any reply that is asked for here can have.
	maxReply = 1 << 20
	// lastFragment is the bit of a record's header that ends the record.
	lastFragment = 1 << 31

	// Ports below 1024 are the only ones that many servers take calls from. The
	// lowest are left to the services that they belong to.
	firstPort = 665
	lastPort  = 1023
	// portAttempts is how many of them are tried before any other will do.
	portAttempts = 32
)

var (
	// ErrUnreachable is part of the error of a call that was never sent.
	ErrUnreachable = errors.New("the server can't be reached")
	// ErrNoAnswer is part of the error of a call to which no proper answer came.
	ErrNoAnswer = errors.New("the server didn't answer")
)

// conn is a connection to one program of a server. It carries one call at a time: no goroutine waits
// on it, and a silent server only blocks the caller.
type conn struct {
	net.Conn
	timeout time.Duration
	xid     uint32
	broken  bool
}

// dial connects, from a port below 1024 where that is allowed.
func dial(ctx context.Context, address string, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connected, err := dialPrivileged(ctx, address)
	if connected == nil && err == nil {
		connected, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, withoutSource(err))
	}
	// A port below 1024 is free again at once, instead of after a minute.
	if tcp, ok := connected.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return &conn{Conn: connected, timeout: timeout, xid: rand.Uint32()}, nil
}

// withoutSource drops our own port from an error of the network, so the same problem has the same
// text each time.
func withoutSource(err error) error {
	var failed *net.OpError
	if errors.As(err, &failed) {
		failed.Source = nil
	}
	return err
}

// dialPrivileged tries ports below 1024. Nil without an error: none is available.
func dialPrivileged(ctx context.Context, address string) (net.Conn, error) {
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}, FallbackDelay: -1}
		connected, err := dialer.DialContext(ctx, "tcp", address)
		switch {
		case err == nil:
			return connected, nil
		case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
			return nil, nil
		case !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, err
		}
	}
	return nil, nil
}

// exchange sends a call and waits for its reply until the timeout or the end of the context. After
// an error the connection can't be used any more: a late answer could pass for that to the next call.
func (c *conn) exchange(ctx context.Context, call []byte) ([]byte, error) {
	deadline := time.Now().Add(c.timeout)
	if ends, has := ctx.Deadline(); has && ends.Before(deadline) {
		deadline = ends
	}
	err := c.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	if err == nil {
		err = c.send(call)
	}
	var reply []byte
	if err == nil {
		reply, err = c.receive()
	}
	// A deadline that can't be stopped any more could end the next call.
	if stopped := stop(); err != nil || !stopped {
		c.discard()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoAnswer, withoutSource(err)), ctx.Err())
	}
	return reply, nil
}

func (c *conn) send(call []byte) error {
	record := binary.BigEndian.AppendUint32(make([]byte, 0, len(call)+4), lastFragment|uint32(len(call)))
	_, err := c.Write(append(record, call...))
	return err
}

// receive reads a record, which may come in several fragments (RFC 5531, 11).
func (c *conn) receive() ([]byte, error) {
	var record []byte
	for {
		var header [4]byte
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return nil, err
		}
		mark := binary.BigEndian.Uint32(header[:])
		length := int(mark &^ lastFragment)
		if length > maxReply-len(record) || length == 0 && mark&lastFragment == 0 {
			return nil, errGarbled
		}
		start := len(record)
		record = append(record, make([]byte, length)...)
		if _, err := io.ReadFull(c, record[start:]); err != nil {
			return nil, err
		}
		if mark&lastFragment != 0 {
			return record, nil
		}
	}
}

// discard closes the connection for good.
func (c *conn) discard() {
	c.broken = true
	c.Close()
}
