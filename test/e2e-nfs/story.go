package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stowage-dev/stowage/hack/uml"
)

const (
	nodes = 2
	// Where the servers are, and where nobody answers.
	serverAddress = "10.99.0.1"
	silentAddress = "10.99.0.9"
	goodPort      = 2049
	otherPort     = 2050
	// mountdOffset is what the port of a server's mountd is above its own.
	mountdOffset = 18000

	// patience is how long anything may take: longer than all that an unmount
	// without its server may.
	patience = 90 * time.Second
	// soon is what a mount takes while all is well, on a machine that is busy.
	soon     = 15 * time.Second
	interval = 100 * time.Millisecond
)

func tapOf(n int) string     { return "tap" + strconv.Itoa(n) }
func gatewayOf(n int) string { return fmt.Sprintf("10.99.%d.1", n) }
func addressOf(n int) string { return fmt.Sprintf("10.99.%d.2", n) }

// story tells and checks. After the first thing that doesn't hold it does nothing
// more, so that a chapter needs no error handling of its own.
type story struct {
	ctx         context.Context
	good, other *server
	nodes       [nodes + 1]*node
	checks      int
	err         error
}

// node is a guest, seen from outside.
type node struct {
	name    string
	guest   *uml.Guest
	console bytes.Buffer
	calls   *rpc.Client
}

// tell tells all of it, in a folder that nothing else is in.
func tell(ctx context.Context, folder string) error {
	started := time.Now()
	if err := prepare(ctx, folder); err != nil {
		return err
	}
	s := &story{ctx: ctx}
	s.do("two NFS servers and two nodes with a kernel of their own start", func() error { return s.boot(folder) })
	for _, chapter := range chapters {
		chapter(s)
	}
	if s.err != nil {
		s.show()
		return s.err
	}
	fmt.Printf("\nAll %d checks held, in %.0f s.\n", s.checks, time.Since(started).Seconds())
	return nil
}

// boot starts servers and nodes.
func (s *story) boot(folder string) error {
	var err error
	for port, server := range map[int]**server{goodPort: &s.good, otherPort: &s.other} {
		if *server, err = newServer(port, filepath.Join(folder, strconv.Itoa(port))); err != nil {
			return err
		}
		if err := (*server).start(s.ctx); err != nil {
			return err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for n := 1; n <= nodes; n++ {
		booted := &node{name: "node " + strconv.Itoa(n)}
		booted.guest, err = uml.Boot(s.ctx, uml.Options{
			Name: "node" + strconv.Itoa(n), Dir: folder, Memory: "256M", Tap: tapOf(n),
			Init: []string{program, nodeArgument, addressOf(n) + "/24", gatewayOf(n)}, Console: &booted.console,
		})
		if err != nil {
			return err
		}
		s.nodes[n] = booted
	}
	for n := 1; n <= nodes; n++ {
		if err := s.nodes[n].connect(s.ctx, addressOf(n)); err != nil {
			return err
		}
	}
	return nil
}

// connect waits until a node can be asked.
func (n *node) connect(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: time.Second}
	err := eventually(ctx, func() error {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, nodePort))
		if err == nil {
			n.calls = rpc.NewClient(conn)
		}
		select {
		case <-n.guest.Gone():
			return nil
		default:
			return err
		}
	})
	if err == nil && n.calls == nil {
		err = errors.New("its kernel ended")
	}
	if err != nil {
		return fmt.Errorf("%s doesn't boot: %w", n.name, err)
	}
	return nil
}

// ask has a node do something.
func (n *node) ask(method string, asked, answer any) error {
	select {
	case call := <-n.calls.Go("Node."+method, asked, answer, make(chan *rpc.Call, 1)).Done:
		return call.Error
	case <-time.After(patience):
		return fmt.Errorf("%s of %s takes more than %s", method, n.name, patience)
	}
}

// eventually tries until there is no error, or patience ends.
func eventually(ctx context.Context, try func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for err := try(); err != nil; err = try() {
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func (s *story) chapter(title string) {
	if s.err == nil {
		fmt.Printf("\n%s\n\n", title)
	}
}

// do does something, and checks that it succeeded. What says so.
func (s *story) do(what string, work func() error) {
	if s.err != nil {
		return
	}
	started := time.Now()
	if err := work(); err != nil {
		fmt.Printf("  ✗ %s  (%.1f s)\n", what, time.Since(started).Seconds())
		s.err = fmt.Errorf("it doesn't hold that %s: %w", what, err)
		return
	}
	s.checks++
	fmt.Printf("  ✓ %s  (%.1f s)\n", what, time.Since(started).Seconds())
}

// background begins work, which finish waits for.
func (s *story) background(work func() error) (finish func() error) {
	if s.err != nil {
		return nil
	}
	result := make(chan error, 1)
	go func() { result <- work() }()
	return func() error { return <-result }
}

// show prints what helps to understand a failure.
func (s *story) show() {
	const most = 2000
	for _, node := range s.nodes {
		if node != nil {
			fmt.Printf("\n--- the end of the console of %s\n%s\n", node.name, end(node.console.Bytes(), most))
		}
		var stuck string
		if node != nil && node.calls != nil && node.ask("Stuck", Nothing{}, &stuck) == nil && stuck != "" {
			fmt.Printf("--- what it waits for\n%s\n", stuck)
		}
	}
	for _, server := range []*server{s.good, s.other} {
		if server != nil {
			log, _ := os.ReadFile(server.file("log"))
			fmt.Printf("\n--- the end of the log of server %d\n%s\n", server.port, end(log, most))
		}
	}
}

func end(text []byte, most int) []byte { return text[max(0, len(text)-most):] }
