package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const nodePort = "7000"

// Hardware is what a node has.
type Hardware struct {
	// Memory is how much, such as 3G. Empty: 384M.
	Memory string
	// Disk is the size in bytes of a disk of its own, uml.Disk, which outlives a
	// crash. 0: it has none.
	Disk int64
}

// machineDisk is the size of the machine's disk, which takes space as it is written to.
const machineDisk = 16 << 30

// Node is a guest, or the machine itself as far as the test's namespaces go, seen from
// outside: the machine can be asked what guests can, and so can be one of the nodes.
type Node struct {
	Name string
	// number is that of its network. The machine's is 0.
	number   int
	hardware Hardware
	folder   Folder
	guest    *uml.Guest
	calls    *rpc.Client
}

// Nothing is an answer that says nothing.
type Nothing struct{}

// Boot boots nodes, called node1 and so on, and waits until they can be asked.
func Boot(ctx context.Context, folder Folder, count int, hardware Hardware) ([]*Node, error) {
	for n := 1; n <= count; n++ {
		if err := link(ctx, n); err != nil {
			return nil, err
		}
	}
	return connectAll(ctx, Node{folder: folder, hardware: hardware}, count, (*Node).start)
}

// Connect is the nodes that another process of the test has booted, called node1 and so on.
// They can be asked, and neither crashed nor booted.
func Connect(ctx context.Context, folder Folder, count int) ([]*Node, error) {
	return connectAll(ctx, Node{folder: folder}, count, func(*Node, context.Context) error { return nil })
}

func connectAll(ctx context.Context, kind Node, count int, start func(*Node, context.Context) error) ([]*Node, error) {
	nodes := make([]*Node, count)
	for i := range nodes {
		node := kind
		node.number, node.Name, nodes[i] = i+1, "node"+strconv.Itoa(i+1), &node
		if err := start(&node, ctx); err != nil {
			return nil, err
		}
	}
	for _, node := range nodes {
		if err := node.connect(ctx); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// ConnectMachine is the machine that the test runs on, once a process of the test serves it.
func ConnectMachine(ctx context.Context, folder Folder) (*Node, error) {
	machine := &Node{Name: "machine", folder: folder}
	err := machine.connect(ctx)
	return machine, err
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
	disk, err := n.disk()
	if err != nil {
		return err
	}
	console, err := os.OpenFile(n.folder.Log(n.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	// The guest outlives the step that boots it: it ends with this process, or a crash.
	n.guest, err = uml.Boot(context.WithoutCancel(ctx), uml.Options{
		Name: n.Name, Dir: n.folder.Memory(), Memory: cmp.Or(n.hardware.Memory, "384M"), CPU: n.number, Disk: disk, Tap: tapOf(n.number),
		Init:        []string{program, nodeArgument, addressOf(n.number) + "/24", gatewayOf(n.number), n.folder.Logs()},
		Environment: []string{"XDG_CACHE_HOME=" + n.folder.caches()},
		// A guest can't have a file for a console: this makes it a pipe.
		Console: io.MultiWriter(console),
	})
	return err
}

// disk is the image of its own disk, which is there since its first start.
func (n *Node) disk() (string, error) {
	if n.hardware.Disk == 0 {
		return "", nil
	}
	return n.folder.Disk(n.Name, n.hardware.Disk)
}

// Address is that of the node in the nodes' network.
func (n *Node) Address() string { return addressOf(n.number) }

// Path is where the node has a file of the machine's, which a guest can't write to.
func (n *Node) Path(machine string) string {
	if n.number == 0 {
		return machine
	}
	return filepath.Join(uml.MachineDir, machine)
}

// Logs is where the node has the folder of logs.
func (n *Node) Logs() string {
	if n.number == 0 {
		return n.folder.Logs()
	}
	return logsDir
}

// Disk is the device of the node's own disk, or of the machine's the image.
func (n *Node) Disk() (string, error) {
	if n.number == 0 {
		return n.folder.Disk(n.Name, machineDisk)
	}
	return uml.Disk, nil
}

func (n *Node) connect(ctx context.Context) error {
	address, dialer := addressOf(n.number), net.Dialer{Timeout: time.Second}
	err := scenario.Eventually(ctx, func() error {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, nodePort))
		if err == nil {
			n.calls = rpc.NewClient(conn)
		}
		select {
		case <-n.gone():
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

// gone is closed when the guest is. It is nil where another process has booted it.
func (n *Node) gone() <-chan struct{} {
	if n.guest == nil {
		return nil
	}
	return n.guest.Gone()
}

// Call has a node do something: a method of one of its services, such as Files.Read.
func (n *Node) Call(ctx context.Context, method string, request, answer any) error {
	return n.CallWithin(ctx, scenario.Patience, method, request, answer)
}

// CallWithin is Call for what may take longer than most does.
func (n *Node) CallWithin(ctx context.Context, patience time.Duration, method string, request, answer any) error {
	if n.calls == nil {
		return fmt.Errorf("asking %s, which doesn't run", n.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case call := <-n.calls.Go(method, request, answer, make(chan *rpc.Call, 1)).Done:
		return call.Error
	case <-n.gone():
		return fmt.Errorf("asking %s for %s: its kernel ended", n.Name, method)
	case <-ctx.Done():
		return fmt.Errorf("asking %s for %s: no answer: %w", n.Name, method, ctx.Err())
	}
}

// Crash ends a node at once, as a loss of power does.
func (n *Node) Crash() { n.guest.Crash() }
