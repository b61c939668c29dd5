package csi

import (
	"context"
	"errors"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// toStatus gives an error of a method its code, unless it has one.
func toStatus(err error, method string) error {
	var coded interface{ GRPCStatus() *status.Status }
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return status.Error(codeOf(err, method), message.Cut(err.Error(), message.MaxStatus))
}

// codeOf is the code of an error. An error may be of several kinds: codes come first after
// which kubelets expect that something was left behind, or goes on.
func codeOf(err error, method string) codes.Code {
	is := func(kinds ...error) bool {
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				return true
			}
		}
		return false
	}
	switch {
	case is(context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case is(context.Canceled):
		return codes.Canceled
	case is(remote.ErrSilent, remote.ErrBusy, remote.ErrDetached, volumes.ErrGone):
		return codes.Unavailable
	case is(volumes.ErrInvalid):
		return codes.InvalidArgument
	case is(volumes.ErrNotFound):
		return codes.NotFound
	case is(volumes.ErrOtherVolume):
		return codes.AlreadyExists
	case is(volumes.ErrNotStaged, volumes.ErrInUse):
		return codes.FailedPrecondition
	case is(volumes.ErrNotSupported):
		return codes.Unimplemented
	default:
		return unknownIn(method)
	}
}

// unknownIn is the code of errors of no known kind. After Internal, a kubelet takes it that
// the volume isn't mounted, and doesn't unstage or unpublish it. A volume that is mounted
// would stay so while its disk is detached. Where a method may have mounted something,
// Unavailable has the kubelet take it away.
func unknownIn(method string) codes.Code {
	if method == csispec.Node_NodeStageVolume_FullMethodName || method == csispec.Node_NodePublishVolume_FullMethodName {
		return codes.Unavailable
	}
	return codes.Internal
}

// shortName is a method's name without its service's.
func shortName(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }
