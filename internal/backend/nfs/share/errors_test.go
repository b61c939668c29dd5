package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

func TestErrorsGetTheirKind(t *testing.T) {
	unknown := backend.ErrorKind("")
	for _, test := range []struct {
		err    error
		kind   backend.ErrorKind
		advice string
	}{
		{syscall.ENOSPC, backend.Exhausted, "/srv of server nfs.example.com is full"},
		{syscall.EDQUOT, backend.Exhausted, "full"},
		{syscall.EROFS, backend.Unavailable, "export it with rw"},
		{syscall.EACCES, backend.Unavailable, "no_root_squash"},
		{syscall.EPERM, backend.Unavailable, "no_root_squash"},
		{syscall.ESTALE, backend.Unavailable, "was replaced"},
		{syscall.EAGAIN, backend.Unavailable, "isn't ready"},
		{syscall.ENOTDIR, backend.Conflict, "lies on the way"},
		{tree.ErrOtherFileSystem, backend.Conflict, "lies on the way"},
		{syscall.ENAMETOOLONG, backend.Invalid, "change nfs.directoryTemplate"},
		{nfs3.ErrUnreachable, backend.Unavailable, "can't be reached"},
		{fmt.Errorf("%w: %w", nfs3.ErrUnreachable, &net.DNSError{Err: "no such host"}), backend.Unavailable, "doesn't resolve"},
		{fmt.Errorf("%w: %w", nfs3.ErrNoExport, syscall.EACCES), backend.Unavailable, "add it to the server's exports"},
		{nfs3.ErrNoAnswer, backend.Unavailable, "doesn't answer"},
		{context.DeadlineExceeded, backend.Unavailable, "doesn't answer"},
		{mounted.ErrNotMounted, backend.Unavailable, "in the manager's pod"},
		{backend.Conflict.Errorf("it is another's"), backend.Conflict, "it is another's"},
		{fmt.Errorf("%w: %w", tree.ErrLost, nfs3.ErrNoAnswer), unknown, "the outcome is not known"},
		{fmt.Errorf("%w: %w", tree.ErrLost, context.Canceled), unknown, "the outcome is not known"},
		{syscall.EIO, unknown, "input/output error"},
		{io.ErrUnexpectedEOF, unknown, "unexpected EOF"},
	} {
		t.Run(test.err.Error(), func(t *testing.T) {
			err := Translate("nfs.example.com", "/srv", "trying", &os.PathError{Op: "making", Path: "a", Err: test.err})
			if backend.KindOf(err) != test.kind || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.advice) {
				t.Errorf("it is of kind %q: %v", backend.KindOf(err), err)
			}
		})
	}
	if Translate("nfs.example.com", "/srv", "trying", nil) != nil {
		t.Error("of no error one is made")
	}
}
