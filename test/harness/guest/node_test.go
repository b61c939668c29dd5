package guest

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"testing"
)

func TestAskGivesUpWithItsContext(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go func() { _, _ = there.Read(make([]byte, 1<<10)) }() // a node that never answers
	node := &Node{Name: "node1", calls: rpc.NewClient(here)}
	defer node.calls.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := node.Call(ctx, "Files.List", "/", &[]string{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
