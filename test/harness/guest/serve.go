package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// logsDir is where nodes have the folder of logs: what they write there outlives
// them.
const logsDir = "/run/logs"

// serve is a guest's first process: it does what it is asked to until it is killed.
func (s Suite) serve(address, gateway, logs string) error {
	// NFS servers take clients of one name for one that was restarted.
	if err := uml.Prepare(strings.ReplaceAll(address, "/", "-")); err != nil {
		return err
	}
	err := Commands(context.Background(), "ip link set lo up", "ip address add "+address+" dev vec0", "ip link set vec0 up",
		"ip route add default via "+gateway)
	if err != nil {
		return fmt.Errorf("setting up the network: %w", err)
	}
	if err := os.Mkdir(logsDir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("logs", logsDir, "hostfs", 0, logs); err != nil {
		return fmt.Errorf("mounting the folder of logs: %w", err)
	}
	calls, err := newServer(s.Services)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":"+nodePort)
	if err != nil {
		return err
	}
	calls.Accept(listener)
	return errors.New("nobody asks any more")
}

// newServer serves what every node can be asked, and more services.
func newServer(more func() ([]any, error)) (*rpc.Server, error) {
	services := []any{Files{}, &Load{}, Processes{}, &Agent{}}
	if more != nil {
		added, err := more()
		if err != nil {
			return nil, err
		}
		services = append(services, added...)
	}
	calls := rpc.NewServer()
	for _, service := range services {
		if err := calls.Register(service); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// machineDisk is the size of the machine's disk, which takes space as it is written to.
const machineDisk = 16 << 30

// Machine is the machine itself, as far as the test's namespaces go: it can be asked
// what nodes can, and so can be one of them.
type Machine struct {
	folder Folder
	calls  *rpc.Client
}

// socket is where a machine serves other processes of its test.
func socket(folder Folder) string { return filepath.Join(folder.Memory(), "machine.sock") }

// NewMachine is the machine that the test runs on, which serves what every node does,
// and these services, to this process and to those that connect.
func NewMachine(folder Folder, services func() ([]any, error)) (*Machine, error) {
	server, err := newServer(services)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", socket(folder))
	if err != nil {
		return nil, fmt.Errorf("serving what the machine does: %w", err)
	}
	go server.Accept(listener)
	return ConnectMachine(folder)
}

// ConnectMachine is the machine that another process of the test made with NewMachine.
func ConnectMachine(folder Folder) (*Machine, error) {
	calls, err := rpc.Dial("unix", socket(folder))
	if err != nil {
		return nil, fmt.Errorf("connecting to the machine's services: %w", err)
	}
	return &Machine{folder, calls}, nil
}

// Address is that of the machine in the nodes' network.
func (*Machine) Address() string { return Address }

// Path is where the machine has a file: where it is.
func (*Machine) Path(machine string) string { return machine }

// Logs is the folder of logs.
func (m *Machine) Logs() string { return m.folder.Logs() }

// Disk is the image of a disk for the machine as a node.
func (m *Machine) Disk() (string, error) { return m.folder.Disk("machine", machineDisk) }

// Ask has the machine do something: a method of one of the services.
func (m *Machine) Ask(method string, asked, answer any) error {
	return ask("the machine", m.calls, nil, scenario.Patience, rpc.Call{ServiceMethod: method, Args: asked, Reply: answer})
}
