package guests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"strconv"
	"time"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/story"
)

const (
	usual    = "384M"
	nodePort = "7000"
)

// Node is a guest, seen from outside.
type Node struct {
	Name string
	// number tells its network, and memory is how much it has.
	number int
	memory string
	folder Folder
	guest  *uml.Guest
	calls  *rpc.Client
}

// Nothing is an answer that says nothing.
type Nothing struct{}

// Boot boots nodes, called node1 and so on, and waits until they can be asked.
func Boot(ctx context.Context, folder Folder, count int) ([]*Node, error) {
	return BootWith(ctx, folder, count, usual)
}

// BootWith is Boot of nodes that each have so much memory, such as 3G.
func BootWith(ctx context.Context, folder Folder, count int, memory string) ([]*Node, error) {
	var nodes []*Node
	for n := 1; n <= count; n++ {
		node := &Node{Name: "node" + strconv.Itoa(n), number: n, memory: memory, folder: folder}
		if err := errors.Join(link(ctx, n), node.start(ctx)); err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		if err := node.connect(ctx); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// BootAgain boots a node that crashed, and waits until it can be asked. Of what it
// had in its memory nothing is left.
func (n *Node) BootAgain(ctx context.Context) error {
	n.calls = nil
	if err := n.start(ctx); err != nil {
		return err
	}
	return n.connect(ctx)
}

func (n *Node) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	console, err := os.OpenFile(n.folder.Log(n.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	n.guest, err = uml.Boot(ctx, uml.Options{
		Name: n.Name, Dir: n.folder.Memory(), Memory: n.memory, Tap: tapOf(n.number),
		Init:        []string{program, nodeArgument, addressOf(n.number) + "/24", gatewayOf(n.number), n.folder.Logs()},
		Environment: []string{"XDG_CACHE_HOME=" + n.folder.caches()},
		// A guest can't have a file for a console: this makes it a pipe.
		Console: io.MultiWriter(console),
	})
	return err
}

// connect waits until a node can be asked.
func (n *Node) connect(ctx context.Context) error {
	address, dialer := addressOf(n.number), net.Dialer{Timeout: time.Second}
	err := story.Eventually(ctx, func() error {
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
		return fmt.Errorf("booting %s: %w", n.Name, err)
	}
	return nil
}

// Ask has a node do something: a method of one of its services, such as Files.Read.
func (n *Node) Ask(method string, asked, answer any) error {
	if n.calls == nil {
		return fmt.Errorf("asking %s, which doesn't run", n.Name)
	}
	select {
	case call := <-n.calls.Go(method, asked, answer, make(chan *rpc.Call, 1)).Done:
		return call.Error
	case <-n.guest.Gone():
		return fmt.Errorf("asking %s for %s: its kernel ended", n.Name, method)
	case <-time.After(story.Patience):
		return fmt.Errorf("asking %s for %s: no answer within %s", n.Name, method, story.Patience)
	}
}

// Crash ends a node at once, as a loss of power does.
func (n *Node) Crash() { n.guest.Crash() }
