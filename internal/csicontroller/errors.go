package csicontroller

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
)

// Pauses between the repeats of a call that goes on: the first, and the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// codeOf has the code of each kind of error. A node that can't have a volume, or that doesn't exist, isn't
// found. An error of no kind is Internal: its outcome is unknown, and the call is repeated.
var codeOf = map[backend.ErrorKind]codes.Code{
	backend.NotFound:    codes.NotFound,
	backend.Invalid:     codes.InvalidArgument,
	backend.WrongNode:   codes.NotFound,
	backend.Exhausted:   codes.ResourceExhausted,
	backend.Conflict:    codes.AlreadyExists,
	backend.Queued:      codes.Aborted,
	backend.InProgress:  codes.Aborted,
	backend.NotReady:    codes.Unavailable,
	backend.Unavailable: codes.Unavailable,
	"":                  codes.Internal,
}

// toStatus gives an error its code, unless it has one. It bounds the text: servers write parts of it.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	code, said := codeOf[backend.KindOf(err)], err.Error()
	given, coded := status.FromError(err)
	switch {
	case coded:
		code, said = given.Code(), given.Message()
	case code == codes.Internal && errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case code == codes.Internal && errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, message.Cut(said, message.MaxStatus))
}

func missing(field string) error { return status.Errorf(codes.InvalidArgument, "%s is missing", field) }

func precondition(format string, arguments ...any) error {
	return status.Errorf(codes.FailedPrecondition, format, arguments...)
}

func unimplemented(text string) error { return status.Error(codes.Unimplemented, text) }

// finish repeats a call of a backend while what it began goes on, or until the caller gives up: then the
// caller repeats it.
func finish(ctx context.Context, call func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := call(ctx)
		if !backend.Unfinished(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// pending are the volumes and snapshots that calls are about.
type pending struct {
	mu   sync.Mutex
	keys map[string]bool
}

// begin refuses a second call for a volume or a snapshot. The handle of a snapshot ends with its id.
func (p *pending) begin(id string) (end func(), err error) {
	key := path.Base(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys[key] {
		return nil, status.Errorf(codes.Aborted, "a call for %.200q is pending: repeat this one after it", id)
	}
	p.keys[key] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.keys, key)
	}, nil
}
