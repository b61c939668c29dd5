package guest

import (
	"context"
	"errors"
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
