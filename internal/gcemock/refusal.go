package gcemock

import (
	"cmp"
	"net/http"
	"time"
)

// refusalReasons are what statuses mean unless a fault says otherwise.
var refusalReasons = map[int]string{
	http.StatusTooManyRequests: reasonRate, http.StatusForbidden: reasonQuota, http.StatusNotFound: reasonNotFound,
	http.StatusBadRequest: reasonInvalid, http.StatusConflict: reasonExists, http.StatusPreconditionFailed: reasonCondition,
	http.StatusUnauthorized: reasonAuthorization, http.StatusInternalServerError: reasonInternal,
}

// refusal is the error that a call is answered with, without effect.
func refusal(f *fault) error {
	if f == nil || f.Status == 0 {
		return nil
	}
	return &apiError{
		Status: f.Status, Reason: cmp.Or(f.Reason, cmp.Or(refusalReasons[f.Status], reasonBackend)),
		Message: cmp.Or(f.Message, "A fault was asked for: "+http.StatusText(f.Status)), RetryAfter: time.Duration(f.RetryAfter),
	}
}

// markFault writes on an operation what is to go wrong with it.
func markFault(f *fault, row *operation) {
	if f == nil {
		return
	}
	row.Delay = time.Duration(f.Delay)
	if f.Operation != "" {
		row.Failure = &apiError{
			Status: http.StatusBadRequest, Reason: reasonInvalid, Code: f.Operation,
			Message: cmp.Or(f.Message, "A fault was asked for: "+f.Operation),
		}
	}
}
