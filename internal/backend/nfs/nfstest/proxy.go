package nfstest

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
)

// Fault is what a Proxy does to one call.
type Fault int

// Faults.
const (
	// None passes call and reply on.
	None Fault = iota
	// DropCall closes the connection in place of passing the call on.
	DropCall
	// LoseReply passes the call on, and closes the connection in place of
	// passing the reply on.
	LoseReply
	// HalfReply closes the connection in the middle of the reply.
	HalfReply
	// ShortReply passes on a reply that ends too early, as if it were whole.
	ShortReply
	// Garbage answers with what is no reply.
	Garbage
	// HugeReply begins a reply of 2 GiB.
	HugeReply
	// WrongNumber answers as if to another call.
	WrongNumber
	// Fragments passes the reply on in pieces of one byte each.
	Fragments
	// Silence passes the call on and answers nothing, for ever.
	Silence
	// DeadSilence doesn't pass the call on either.
	DeadSilence
)

const (
	lastFragment = 1 << 31
	maxRecord    = 1 << 24
	// procedureAt is the offset of the procedure's number in a call.
	procedureAt = 20
)

// Call is one call, as a Proxy sees it.
type Call struct {
	// Number counts the calls that the proxy saw, from 1.
	Number int
	// Procedure of NFS or mountd that is called.
	Procedure uint32
}

// Proxy is before a server and makes faults.
type Proxy struct {
	listener net.Listener
	server   int

	mu    sync.Mutex
	calls int
	plan  func(Call) Fault
	open  map[net.Conn]bool
}

// NewProxy starts a proxy before the server at a port.
func NewProxy(server int) (*Proxy, error) {
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	proxy := &Proxy{listener: listener, server: server, open: map[net.Conn]bool{}}
	go proxy.serve()
	return proxy, nil
}

// Port is where the proxy listens.
func (p *Proxy) Port() int { return portOf(p.listener) }

// Plan sets the function that chooses each call's fault; nil lets all calls pass. The calls are
// counted from 1 again.
func (p *Proxy) Plan(plan func(Call) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.calls = plan, 0
}

// Calls is how many calls came since the last Plan.
func (p *Proxy) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Hangup closes all connections, as a server does after a timeout.
func (p *Proxy) Hangup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		conn.Close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.Hangup()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.relay(client)
	}
}

func (p *Proxy) relay(client net.Conn) {
	defer p.track(client)()
	server, err := net.Dial("tcp", net.JoinHostPort(Host, strconv.Itoa(p.server))) //nolint:noctx // the proxy's own lifetime is the connection's
	if err != nil {
		return
	}
	defer p.track(server)()
	for {
		call, err := readRecord(client)
		if err != nil || len(call) < procedureAt+4 {
			return
		}
		if !p.pass(call, client, server) {
			return
		}
	}
}

// pass passes one call on, and reports whether the connection can still be used.
func (p *Proxy) pass(call []byte, client, server net.Conn) bool {
	fault := p.faultFor(call)
	switch fault {
	case DropCall:
		return false
	case DeadSilence:
		_, _ = io.Copy(io.Discard, client)
		return false
	}
	if err := writeRecord(server, call); err != nil {
		return false
	}
	reply, err := readRecord(server)
	if err != nil {
		return false
	}
	return answerWith(fault, reply, client)
}

// answerWith sends a reply, or what the fault makes of it.
func answerWith(fault Fault, reply []byte, client net.Conn) bool {
	header := binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(reply)))
	switch fault {
	case LoseReply:
		return false
	case Silence:
		_, _ = io.Copy(io.Discard, client)
		return false
	case HalfReply:
		_, _ = client.Write(append(header, reply[:len(reply)/2]...))
		return false
	case ShortReply:
		return writeRecord(client, reply[:len(reply)/2]) == nil
	case Garbage:
		return writeRecord(client, []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")) == nil
	case HugeReply:
		_, err := client.Write([]byte{0xff, 0xff, 0xff, 0xff})
		return err == nil
	case WrongNumber:
		reply[0] ^= 0xff
	case Fragments:
		return writeFragments(client, reply) == nil
	}
	return writeRecord(client, reply) == nil
}

func (p *Proxy) faultFor(call []byte) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.plan == nil {
		return None
	}
	return p.plan(Call{Number: p.calls, Procedure: binary.BigEndian.Uint32(call[procedureAt:])})
}

// track makes Close close a connection, until the returned function does.
func (p *Proxy) track(conn net.Conn) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[conn] = true
	if tcp, ok := conn.(*net.TCPConn); ok {
		// A client that comes back from the same port must not meet the old
		// connection, which would linger for a minute.
		_ = tcp.SetLinger(0)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, conn)
		conn.Close()
	}
}

func readRecord(from io.Reader) ([]byte, error) {
	var record []byte
	for {
		var header [4]byte
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return nil, err
		}
		mark := binary.BigEndian.Uint32(header[:])
		fragment := make([]byte, min(mark&^lastFragment, maxRecord))
		if _, err := io.ReadFull(from, fragment); err != nil {
			return nil, err
		}
		record = append(record, fragment...)
		if mark&lastFragment != 0 {
			return record, nil
		}
	}
}

func writeRecord(to io.Writer, record []byte) error {
	header := binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(record)))
	_, err := to.Write(append(header, record...))
	return err
}

func writeFragments(to io.Writer, record []byte) error {
	for i, octet := range record {
		mark := uint32(1)
		if i == len(record)-1 {
			mark |= lastFragment
		}
		if _, err := to.Write(append(binary.BigEndian.AppendUint32(nil, mark), octet)); err != nil {
			return err
		}
	}
	return nil
}
