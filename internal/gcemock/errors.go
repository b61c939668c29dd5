package gcemock

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/api/compute/v1"
)

// Reasons that Google gives in the bodies of errors. Clients decide by them.
const (
	reasonInvalid       = "invalid"
	reasonNotFound      = "notFound"
	reasonExists        = "alreadyExists"
	reasonInUse         = "resourceInUseByAnotherResource"
	reasonNotReady      = "resourceNotReady"
	reasonCondition     = "conditionNotMet"
	reasonQuota         = "quotaExceeded"
	reasonRate          = "rateLimitExceeded"
	reasonLimit         = "limitExceeded"
	reasonBackend       = "backendError"
	reasonInternal      = "internalError"
	reasonAuthorization = "authError"
	// reasonNotServed is not Google's: this server lacks what Google has.
	reasonNotServed = "notImplemented"
)

// operationCodes are what an operation that ends in error says instead.
var operationCodes = map[string]string{
	reasonInvalid:   "INVALID_USAGE",
	reasonNotFound:  "RESOURCE_NOT_FOUND",
	reasonExists:    "RESOURCE_ALREADY_EXISTS",
	reasonInUse:     "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
	reasonNotReady:  "RESOURCE_NOT_READY",
	reasonCondition: "CONDITION_NOT_MET",
	reasonQuota:     "QUOTA_EXCEEDED",
	reasonLimit:     "LIMIT_EXCEEDED",
}

// apiError is an error that a client sees.
type apiError struct {
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	// Code is what an operation that ends in this error says. Empty: by Reason.
	Code string
}

// Error implements error.
func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Reason, e.Message) }

// ended is the error as an operation shows it.
func (e *apiError) ended() *compute.OperationError {
	code := cmp.Or(e.Code, cmp.Or(operationCodes[e.Reason], "INTERNAL_ERROR"))
	return &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: code, Message: e.Message}}}
}

// asAPIError makes an error one that a client sees.
func asAPIError(err error) *apiError {
	var known *apiError
	if errors.As(err, &known) {
		return known
	}
	return &apiError{Status: http.StatusInternalServerError, Reason: reasonInternal, Message: "Internal error: " + err.Error()}
}

func errClosed() error {
	return &apiError{Status: http.StatusServiceUnavailable, Reason: reasonBackend, Message: "The server is going away."}
}

// errNotServed refuses what Google has and this server does not.
func errNotServed(what string) error {
	return &apiError{
		Status: http.StatusNotImplemented, Reason: reasonNotServed,
		Message: "gce-mock does not serve " + what + ".",
	}
}

func errNotFound(path string) error {
	return &apiError{Status: http.StatusNotFound, Reason: reasonNotFound, Message: fmt.Sprintf("The resource '%s' was not found", path)}
}

func errExists(path string) error {
	return &apiError{Status: http.StatusConflict, Reason: reasonExists, Message: fmt.Sprintf("The resource '%s' already exists", path)}
}

func errInvalid(field, value, why string) error {
	return &apiError{
		Status: http.StatusBadRequest, Reason: reasonInvalid,
		Message: fmt.Sprintf("Invalid value for field '%s': '%s'. %s", field, value, why),
	}
}

func errInUse(disk, instance string) error {
	return &apiError{
		Status: http.StatusBadRequest, Reason: reasonInUse,
		Message: fmt.Sprintf("The disk resource '%s' is already being used by '%s'", disk, instance),
	}
}

func errNotReady(path string) error {
	return &apiError{Status: http.StatusBadRequest, Reason: reasonNotReady, Message: fmt.Sprintf("The resource '%s' is not ready", path)}
}

func errFingerprint() error {
	return &apiError{
		Status: http.StatusPreconditionFailed, Reason: reasonCondition,
		Message: "Labels fingerprint either invalid or resource labels have changed",
	}
}

func errQuota(metric string, limit int64, region string) error {
	return &apiError{
		Status: http.StatusForbidden, Reason: reasonQuota,
		Message: fmt.Sprintf("Quota '%s' exceeded.  Limit: %d.0 in region %s.", metric, limit, region),
	}
}

// domain is what kind of rule an error is about.
func (e *apiError) domain() string {
	switch e.Reason {
	case reasonQuota, reasonRate, reasonLimit:
		return "usageLimits"
	default:
		return "global"
	}
}
