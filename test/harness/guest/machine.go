package guest

import (
	"fmt"
	"net"
	"net/rpc"
	"path/filepath"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

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
