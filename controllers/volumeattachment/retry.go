package volumeattachment

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
)

const (
	// attachBackoff is the first delay of a retry, and attachBackoffMax the last: a pod waits
	// for it.
	attachBackoff    = 500 * time.Millisecond
	attachBackoffMax = time.Minute
	// retryFirst is the first retry of a refused call. The next take as long as the call has been refused.
	retryFirst = time.Second
	// retryRefused is the longest delay before such a retry: the obstacle may disappear without an event.
	retryRefused = 30 * time.Second
	// retryInvalid is retryRefused for a call that needs action by a person. Most such changes wake
	// the attachment, those in a cloud do not.
	retryInvalid = 5 * time.Minute
	// RetryUnfinished is the delay before the next call for work in flight. The backend has
	// already waited for the work as long as it can, and a pod waits for it.
	RetryUnfinished = 3 * time.Second
)

// VolumeError is a storagev1.VolumeError that replaces all fields of an earlier one.
type VolumeError struct {
	Time      metav1.Time `json:"time"`
	Message   string      `json:"message"`
	ErrorCode *int32      `json:"errorCode"`
}

// codes are gRPC's numbers for kinds of errors, which Kubernetes uses. The kubelet reads that
// of Exhausted, and updates how many devices its node can have.
var codes = map[backend.ErrorKind]int32{
	backend.Invalid: 3, backend.NotFound: 5, backend.Exhausted: 8, backend.WrongNode: 9, backend.Conflict: 9,
	backend.NotReady: 14, backend.Unavailable: 14,
}

// NewVolumeError returns an error for the status of an attachment, cut to the API's limit.
func NewVolumeError(err error, now time.Time) *VolumeError {
	volumeError := &VolumeError{Time: metav1.NewTime(now), Message: messageOf(err)}
	if code, known := codes[backend.KindOf(err)]; known {
		volumeError.ErrorCode = &code
	}
	return volumeError
}

func messageOf(err error) string { return message.Cut(err.Error(), message.MaxStatus) }

// isPaused reports whether a call was not made, because the storage requested a pause: the
// error adds nothing to the recorded one.
func isPaused(recorded *storagev1.VolumeError, err error) bool {
	return recorded != nil && !backend.PausedUntil(err).IsZero()
}

// retryOf returns when to retry. It returns an error, for the backoff, unless a backend refused the call
// or requested a pause.
func (r *reporter) retryOf(attachment *storagev1.VolumeAttachment, err, returned error) (ctrl.Result, error) {
	now := r.clock.Now()
	if until := backend.PausedUntil(err); !until.IsZero() {
		return ctrl.Result{RequeueAfter: max(until.Sub(now), attachBackoff)}, nil
	}
	last := retryRefused
	switch backend.KindOf(err) {
	case backend.Invalid:
		last = retryInvalid
	case backend.NotFound, backend.Conflict, backend.Exhausted, backend.WrongNode:
	default:
		r.refused.Forget(attachment.Name)
		return ctrl.Result{}, returned
	}
	refused := now.Sub(r.refused.Since(attachment.Name, now))
	return ctrl.Result{RequeueAfter: min(max(refused, retryFirst), last)}, nil
}
