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

// codeOf is the code of an error. Those come first after which kubelets reckon with
// something that was left behind, or goes on: an error may be of several kinds.
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

// unknownIn is the code of what nobody foresaw. Internal tells a kubelet that a volume
// certainly isn't there: one that it then doesn't unstage, or unpublish, would stay
// mounted while its disk is detached. So where something may have been mounted, the code
// is one after which the kubelet has it taken away.
func unknownIn(method string) codes.Code {
	if method == csispec.Node_NodeStageVolume_FullMethodName || method == csispec.Node_NodePublishVolume_FullMethodName {
		return codes.Unavailable
	}
	return codes.Internal
}

// shortName is a method's name without its service's.
func shortName(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }
