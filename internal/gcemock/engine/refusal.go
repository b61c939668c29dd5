package engine

import (
	"cmp"
	"net/http"
	"time"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// refusalReasons are what statuses mean unless a fault says otherwise.
var refusalReasons = map[int]string{
	http.StatusTooManyRequests: wire.ReasonRate, http.StatusForbidden: wire.ReasonQuota, http.StatusNotFound: wire.ReasonNotFound,
	http.StatusBadRequest: wire.ReasonInvalid, http.StatusConflict: wire.ReasonExists, http.StatusPreconditionFailed: wire.ReasonCondition,
	http.StatusUnauthorized: wire.ReasonAuthorization, http.StatusInternalServerError: wire.ReasonInternal,
}

// Refusal is the error that a call is answered with, without effect.
func Refusal(f *fault.Armed) error {
	if f == nil || f.Status == 0 {
		return nil
	}
	return &wire.Error{
		Status: f.Status, Reason: cmp.Or(f.Reason, cmp.Or(refusalReasons[f.Status], wire.ReasonBackend)),
		Message: cmp.Or(f.Message, "A fault was asked for: "+http.StatusText(f.Status)), RetryAfter: time.Duration(f.RetryAfter),
	}
}

// markFault writes on an operation what is to go wrong with it.
func markFault(f *fault.Armed, row *state.Operation) {
	if f == nil {
		return
	}
	row.Delay = time.Duration(f.Delay)
	if f.Operation != "" {
		row.Failure = &wire.Error{
			Status: http.StatusBadRequest, Reason: wire.ReasonInvalid, Code: f.Operation,
			Message: cmp.Or(f.Message, "A fault was asked for: "+f.Operation),
		}
	}
}
