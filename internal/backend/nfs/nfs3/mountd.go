package nfs3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3/status"
)

// Programs that are called before NFS: rpcbind's portmapper for the ports (RFC 1833), mountd for the
// share's first handle (RFC 1813, appendix I).
const (
	portmapperPort = 111
	protocolTCP    = 6
	maxHandle      = 64
	maxAddress     = 256
	maxFlavours    = 64
	mountOK        = 0
)

var (
	getPort    = procedure{program: 100000, version: 2, number: 3}
	getAddress = procedure{program: 100000, version: 4, number: 3}
	mountDir   = procedure{program: 100005, version: 3, number: 1}
	nfs        = procedure{program: 100003, version: 3}
)

// ErrNoExport is part of the error where a server has no share of the path, or
// not for this client.
var ErrNoExport = errors.New("the server doesn't export the path")

// portOf asks the portmapper for a program's port.
func (c *Client) portOf(ctx context.Context, program procedure) (int, error) {
	portmapper, err := dial(ctx, net.JoinHostPort(c.host, strconv.Itoa(portmapperPort)), c.options.CallTimeout)
	if err != nil {
		return 0, fmt.Errorf("asking rpcbind, which a server of NFS version 3 runs (if it speaks version 4 alone, mount the share in the manager's pod): %w", err)
	}
	defer portmapper.Close()
	port, err := askPort(ctx, portmapper, program)
	if err != nil {
		return 0, fmt.Errorf("asking rpcbind: %w", err)
	}
	if port == 0 {
		return 0, fmt.Errorf("%w: it runs rpcbind, but no NFS version 3", ErrUnreachable)
	}
	return int(port), nil
}

// askPort uses the protocol version that fits the address: version 2, which every server speaks, has
// only IPv4 ports (RFC 1833, 3).
func askPort(ctx context.Context, portmapper *conn, program procedure) (uint16, error) {
	if address, isTCP := portmapper.RemoteAddr().(*net.TCPAddr); isTCP && address.IP.To4() == nil {
		arguments := (&encoder{}).uint32(program.program, program.version).opaque([]byte("tcp6")).opaque(nil).opaque(nil)
		results, err := portmapper.call(ctx, getAddress, arguments.buf)
		if err != nil {
			return 0, err
		}
		universal := string(results.opaque(maxAddress))
		return portIn(universal), results.err
	}
	arguments := (&encoder{}).uint32(program.program, program.version, protocolTCP, 0)
	results, err := portmapper.call(ctx, getPort, arguments.buf)
	if err != nil {
		return 0, err
	}
	return uint16(results.uint32()), results.err
}

// portIn reads the port of a universal address: its last two numbers
// (RFC 5665, 5.2.3.3): 0 where there is none.
func portIn(universal string) uint16 {
	parts := strings.Split(universal, ".")
	if len(parts) < 2 {
		return 0
	}
	high, errHigh := strconv.ParseUint(parts[len(parts)-2], 10, 8)
	low, errLow := strconv.ParseUint(parts[len(parts)-1], 10, 8)
	if errHigh != nil || errLow != nil {
		return 0
	}
	return uint16(high<<8 | low)
}

// mount asks mountd for the handle of a share's root.
func (c *Client) mount(ctx context.Context, path string) ([]byte, error) {
	port := c.options.MountPort
	if port == 0 {
		found, err := c.portOf(ctx, mountDir)
		if err != nil {
			return nil, err
		}
		port = found
	}
	mountd, err := dial(ctx, net.JoinHostPort(c.host, strconv.Itoa(port)), c.options.CallTimeout)
	if err != nil {
		return nil, fmt.Errorf("asking mountd: %w", err)
	}
	defer mountd.Close()
	results, err := mountd.call(ctx, mountDir, (&encoder{}).opaque([]byte(path)).buf)
	if err != nil {
		return nil, fmt.Errorf("asking mountd: %w", err)
	}
	return handleFrom(results, path)
}

// handleFrom reads mountd's answer.
func handleFrom(results *decoder, path string) ([]byte, error) {
	code := results.uint32()
	if code != mountOK {
		errno := status.Errno(code)
		if results.err != nil {
			return nil, fmt.Errorf("asking mountd: %w", results.err)
		}
		if errno == syscall.ENOENT || errno == syscall.EACCES || errno == syscall.ENOTDIR || errno == syscall.EPERM {
			return nil, fmt.Errorf("%w: %s: %w", ErrNoExport, path, errno)
		}
		return nil, fmt.Errorf("asking mountd for %s: %w", path, errno)
	}
	handle := slices.Clone(results.opaque(maxHandle))
	count := results.uint32()
	if results.err != nil || len(handle) == 0 || count > maxFlavours {
		return nil, fmt.Errorf("asking mountd: %w", errGarbled)
	}
	flavours := make([]uint32, count)
	for i := range flavours {
		flavours[i] = results.uint32()
	}
	if results.err != nil {
		return nil, fmt.Errorf("asking mountd: %w", errGarbled)
	}
	if count > 0 && !slices.Contains(flavours, authUnix) && !slices.Contains(flavours, authNone) {
		return nil, fmt.Errorf("%w: %s: not with sec=sys: %w", ErrNoExport, path, syscall.EACCES)
	}
	return handle, nil
}
