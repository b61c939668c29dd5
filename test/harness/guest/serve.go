package guest

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
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
	if err := listen("", s.Services); err != nil {
		return err
	}
	select {}
}

// listen begins to serve what every node can be asked, and more services.
func listen(address string, more func() ([]any, error)) error {
	services := []any{Files{}, Processes{}, &Agent{}}
	if more != nil {
		added, err := more()
		if err != nil {
			return err
		}
		services = append(services, added...)
	}
	calls := rpc.NewServer()
	for _, service := range services {
		if err := calls.Register(service); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, nodePort))
	if err != nil {
		return err
	}
	go calls.Accept(listener)
	return nil
}

// ServeMachine has the machine, which the test runs on, serve what every node does, and
// these services, to this process and to those that connect.
func ServeMachine(ctx context.Context, folder Folder, services func() ([]any, error)) (*Node, error) {
	if err := listen(Address, services); err != nil {
		return nil, fmt.Errorf("serving what the machine does: %w", err)
	}
	return ConnectMachine(ctx, folder)
}
