package nfs3

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3/status"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Procedures of NFS version 3.
const (
	procGetAttr     = 1
	procSetAttr     = 2
	procLookup      = 3
	procAccess      = 4
	procReadLink    = 5
	procRead        = 6
	procWrite       = 7
	procCreate      = 8
	procMkdir       = 9
	procSymlink     = 10
	procRemove      = 12
	procRmdir       = 13
	procRename      = 14
	procReadDir     = 16
	procReadDirPlus = 17
	procFSStat      = 18
	procFSInfo      = 19
	procCommit      = 21
)

// session is shared by the Dirs of one Open: a connection, which it replaces when it broke.
type session struct {
	client *Client
	// share is the path of the share.
	share string
	conn  *conn
	// transfer is how many bytes one call reads or writes; 0: the server wasn't asked yet.
	transfer int
}

// query calls a procedure that changes nothing. If a reused connection is broken, it repeats the
// call once on a new one. It doesn't repeat a call that a silent server didn't answer.
func (s *session) query(ctx context.Context, proc uint32, arguments *encoder) (*decoder, error) {
	reused := s.conn != nil
	results, err := s.call(ctx, proc, arguments)
	if reused && errors.Is(err, ErrNoAnswer) && !isTimeout(err) && ctx.Err() == nil {
		results, err = s.call(ctx, proc, arguments)
	}
	if err != nil {
		return nil, err
	}
	return results, s.status(results)
}

// change calls a procedure that changes something. Without a valid answer the error is tree.ErrLost:
// the call may have taken effect. It isn't sent again.
func (s *session) change(ctx context.Context, proc uint32, arguments *encoder) (*decoder, error) {
	results, err := s.call(ctx, proc, arguments)
	if err == nil {
		err = s.status(results)
	}
	if errors.Is(err, ErrNoAnswer) || errors.Is(err, errGarbled) {
		return nil, fmt.Errorf("%w: %w", tree.ErrLost, err)
	}
	return results, err
}

func (s *session) call(ctx context.Context, proc uint32, arguments *encoder) (*decoder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.conn == nil {
		connected, err := s.client.connect(ctx)
		if err != nil {
			return nil, err
		}
		s.conn = connected
	}
	to := nfs
	to.number = proc
	results, err := s.conn.call(ctx, to, arguments.buf)
	if s.conn.broken {
		s.conn = nil
	}
	return results, err
}

// end gives the connection back.
func (s *session) end() {
	if s.conn != nil {
		s.client.keepIdle(s.conn)
		s.conn = nil
	}
}

// status reads the status at the beginning of the results of every procedure. A stale handle may be
// the root's, so the next Open requests the root again. Some servers describe a directory that is
// gone, and refuse everything else.
func (s *session) status(results *decoder) error {
	code := results.uint32()
	if results.err != nil || code == 0 {
		return results.err
	}
	if code == status.BadCookie {
		return tree.ErrCursor
	}
	errno := status.Errno(code)
	if errno == syscall.ESTALE {
		s.client.forget(s.share)
	}
	return errno
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
