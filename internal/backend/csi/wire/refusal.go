package wire

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// SaysThereIsNone reports whether an answer of CreateVolume says that nothing was made of the request.
// NotFound may be about the volume that is copied, which a driver may look for first.
func SaysThereIsNone(err error, source *backend.Source) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange:
		return true
	case codes.NotFound:
		return source == nil || source.ID == ""
	default:
		return false
	}
}

// ErrByHand is the error for a copy that can't be found without its source.
func ErrByHand(driver, id string) error {
	return backend.Invalid.Errorf("the source of the copy is gone, and driver %s finds the copy by it alone: "+
		"look there for a volume with the name %s, remove it, and then the claim's finalizer %s", driver, id, stowagev1alpha1.ProvisioningFinalizer)
}
