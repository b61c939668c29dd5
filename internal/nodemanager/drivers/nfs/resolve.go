package nfs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Resolver finds the address of a server.
type Resolver func(ctx context.Context, server string) (netip.Addr, error)

func lookUp(ctx context.Context, server string) (netip.Addr, error) {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", server)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("looking up NFS server %s: %w", server, err)
	}
	return addresses[0].Unmap(), nil
}
