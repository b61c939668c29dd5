package controller

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
)

// toStatus is what an error of a backend means in CSI. One of no kind is Internal: its
// outcome isn't known, and the call is repeated.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, already := status.FromError(err); already {
		return err
	}
	code, known := map[backend.ErrorKind]codes.Code{
		backend.NotFound: codes.NotFound,
		backend.Invalid:  codes.InvalidArgument,
		// A node that can't have the volume, or that there isn't.
		backend.WrongNode:   codes.NotFound,
		backend.Exhausted:   codes.ResourceExhausted,
		backend.Conflict:    codes.AlreadyExists,
		backend.Queued:      codes.Aborted,
		backend.InProgress:  codes.Aborted,
		backend.Unavailable: codes.Unavailable,
	}[backend.KindOf(err)]
	if !known {
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}

func missing(field string) error {
	return status.Errorf(codes.InvalidArgument, "%s is missing", field)
}
