package plugins

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// maxHeader bounds headers and trailers of answers, which have the texts of errors.
const maxHeader = 32 << 10

// Dial returns a connection to the program behind a socket, which is made by the first call. It
// takes no answer that is longer than maxAnswer bytes.
func Dial(path string, maxAnswer int) (*grpc.ClientConn, error) {
	connection, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithMaxHeaderListSize(maxHeader), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	return connection, nil
}
