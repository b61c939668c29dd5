package share

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Translate gives the errors of servers and kernels their kinds, with advice. An error that may have
// had an effect gets no kind.
func Translate(server, path, doing string, err error) error {
	if err == nil {
		return nil
	}
	if backend.KindOf(err) != "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	place := path + " of server " + server
	for _, known := range []struct {
		is     bool
		kind   backend.ErrorKind
		advice string
	}{
		{isUnresolved(err), backend.Unavailable, "the name " + server + " doesn't resolve: correct nfs.server's DNS entry, or create another backend"},
		{errors.Is(err, nfs3.ErrNoExport), backend.Unavailable, "server " + server + " doesn't export " + path + " to the manager: add it to the server's exports, as insecure unless the manager may use ports below 1024"},
		{errors.Is(err, mounted.ErrNotMounted), backend.Unavailable, "mount " + place + " in the manager's pod"},
		{errors.Is(err, nfs3.ErrUnreachable), backend.Unavailable, "server " + server + " can't be reached: start it, or let the manager through to it"},
		{errors.Is(err, nfs3.ErrNoAnswer) || isOver(err), backend.Unavailable, "server " + server + " doesn't answer: look after it"},
		{errors.Is(err, syscall.ESTALE), backend.Unavailable, "the share's handle is stale: look whether " + place + " was replaced"},
		{errors.Is(err, syscall.EROFS), backend.Unavailable, place + " is read-only: export it with rw"},
		{tree.IsPermission(err), backend.Unavailable, place + " isn't writable for the manager: export it with rw and no_root_squash"},
		{errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT), backend.Exhausted, place + " is full: make room"},
		{errors.Is(err, syscall.EAGAIN), backend.Unavailable, "server " + server + " isn't ready: wait"},
		{errors.Is(err, tree.ErrOtherFileSystem) || errors.Is(err, syscall.ENOTDIR), backend.Conflict, "something that is no directory of this share lies on the way: look at it, and move it away if no volume needs it"},
		{errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL), backend.Invalid, "the server takes no such name: change nfs.directoryTemplate"},
	} {
		switch {
		case known.is && errors.Is(err, tree.ErrLost):
			return fmt.Errorf("%s: %s (%w)", doing, known.advice, err)
		case known.is:
			return known.kind.Errorf("%s: %s (%w)", doing, known.advice, err)
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func isUnresolved(err error) bool {
	var lookup *net.DNSError
	return errors.As(err, &lookup)
}

func isOver(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
