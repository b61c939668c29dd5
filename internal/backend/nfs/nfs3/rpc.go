package nfs3

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Numbers of the RPC protocol (RFC 5531).
const (
	rpcVersion  = 2
	messageCall = 0
	messageBack = 1
	accepted    = 0
	success     = 0
	systemError = 5
	authNone    = 0
	authUnix    = 1
	maxVerifier = 400
)

// errRejected is a call that the server rejected without running it.
var errRejected = errors.New("the server refused the call")

// procedure is one procedure of a program that the server runs.
type procedure struct {
	program, version, number uint32
}

// call calls a procedure as root, and returns its results.
func (c *conn) call(ctx context.Context, to procedure, arguments []byte) (*decoder, error) {
	c.xid++
	message := &encoder{}
	message.uint32(c.xid, messageCall, rpcVersion, to.program, to.version, to.number)
	message.uint32(authUnix).opaque(credentials())
	message.uint32(authNone, 0)
	message.buf = append(message.buf, arguments...)

	reply, err := c.exchange(ctx, message.buf)
	if err != nil {
		return nil, err
	}
	results := &decoder{buf: reply}
	err = openReply(results, c.xid)
	if errors.Is(err, errGarbled) {
		c.discard()
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return results, err
}

// credentials are those of root: the manager acts for all users.
func credentials() []byte {
	const stamp, uid, gid, groups = 0, 0, 0, 0
	body := &encoder{}
	return body.uint32(stamp).opaque([]byte("stowage")).uint32(uid, gid, groups).buf
}

// openReply reads the head of a reply to the call with this number.
func openReply(reply *decoder, xid uint32) error {
	if number, kind := reply.uint32(), reply.uint32(); number != xid || kind != messageBack {
		return errGarbled
	}
	if status := reply.uint32(); status != accepted {
		reason, detail := reply.uint32(), reply.uint32()
		if reply.err != nil {
			return reply.err
		}
		// 1 is AUTH_ERROR, for instance because of the port that a call comes from.
		return fmt.Errorf("%w: denied (%d, %d): %w", errRejected, reason, detail, syscall.EACCES)
	}
	reply.uint32()
	reply.opaque(maxVerifier)
	switch status := reply.uint32(); {
	case reply.err != nil:
		return reply.err
	case status == systemError:
		return fmt.Errorf("calling the server: %w", syscall.EIO)
	case status != success:
		return fmt.Errorf("%w: accept_stat %d: %w", errRejected, status, syscall.EPROTONOSUPPORT)
	}
	return nil
}
