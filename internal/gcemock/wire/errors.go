package wire

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
	ReasonInvalid       = "invalid"
	ReasonNotFound      = "notFound"
	ReasonExists        = "alreadyExists"
	reasonInUse         = "resourceInUseByAnotherResource"
	reasonNotReady      = "resourceNotReady"
	ReasonCondition     = "conditionNotMet"
	ReasonQuota         = "quotaExceeded"
	ReasonRate          = "rateLimitExceeded"
	ReasonLimit         = "limitExceeded"
	ReasonBackend       = "backendError"
	ReasonInternal      = "internalError"
	ReasonAuthorization = "authError"
	// reasonNotServed is not Google's: this server lacks what Google has.
	reasonNotServed = "notImplemented"
)

// operationCodes are what an operation that ends in error says instead.
var operationCodes = map[string]string{
	ReasonInvalid:   "INVALID_USAGE",
	ReasonNotFound:  "RESOURCE_NOT_FOUND",
	ReasonExists:    "RESOURCE_ALREADY_EXISTS",
	reasonInUse:     "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
	reasonNotReady:  "RESOURCE_NOT_READY",
	ReasonCondition: "CONDITION_NOT_MET",
	ReasonQuota:     "QUOTA_EXCEEDED",
	ReasonLimit:     "LIMIT_EXCEEDED",
}

// Error is an error that a client sees.
type Error struct {
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	// Code is what an operation that ends in this error says. Empty: by Reason.
	Code string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Reason, e.Message) }

// Ended is the error as an operation shows it.
func (e *Error) Ended() *compute.OperationError {
	code := cmp.Or(e.Code, cmp.Or(operationCodes[e.Reason], "INTERNAL_ERROR"))
	return &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: code, Message: e.Message}}}
}

// AsError makes an error one that a client sees.
func AsError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Status: http.StatusInternalServerError, Reason: ReasonInternal, Message: "Internal error: " + err.Error()}
}

// Closed refuses a call to an engine that is closed.
func Closed() error {
	return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonBackend, Message: "The server is going away."}
}

// NotServed refuses what Google has and this server does not.
func NotServed(what string) error {
	return &Error{
		Status: http.StatusNotImplemented, Reason: reasonNotServed,
		Message: "gce-mock does not serve " + what + ".",
	}
}

// NotFound refuses a call about a resource that does not exist.
func NotFound(path string) error {
	return &Error{Status: http.StatusNotFound, Reason: ReasonNotFound, Message: fmt.Sprintf("The resource '%s' was not found", path)}
}

// Exists refuses to make a resource at a path that another one has.
func Exists(path string) error {
	return &Error{Status: http.StatusConflict, Reason: ReasonExists, Message: fmt.Sprintf("The resource '%s' already exists", path)}
}

// Invalid refuses the value of a field or parameter.
func Invalid(field, value, why string) error {
	return &Error{
		Status: http.StatusBadRequest, Reason: ReasonInvalid,
		Message: fmt.Sprintf("Invalid value for field '%s': '%s'. %s", field, value, why),
	}
}

// InUse refuses what only a resource without users allows.
func InUse(disk, instance string) error {
	return &Error{
		Status: http.StatusBadRequest, Reason: reasonInUse,
		Message: fmt.Sprintf("The disk resource '%s' is already being used by '%s'", disk, instance),
	}
}

// ZoneDown refuses a change in a zone that is down.
func ZoneDown(zone string) error {
	return &Error{Status: http.StatusServiceUnavailable, Reason: "backendError", Message: fmt.Sprintf("The zone '%s' is down", zone)}
}

// KeyDenied refuses what needs a key of Cloud KMS that the Compute Engine service agent may not use.
func KeyDenied(key string) error {
	return &Error{Status: http.StatusBadRequest, Reason: "kmsPermissionDenied", Message: fmt.Sprintf(
		"Cloud KMS error when using key %s: Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource '%s' (or it may not exist).", key, key)}
}

// KeyNotEnabled refuses what needs a key of Cloud KMS in another state. Google documents no reason: this one follows that of
// KeyDenied.
func KeyNotEnabled(version, state string) error {
	return &Error{Status: http.StatusBadRequest, Reason: "kmsFailedPrecondition", Message: fmt.Sprintf(
		"Cloud KMS error when using key %s: %s is not enabled, current state is: %s.", version, version, state)}
}

// NotReady refuses a call about a resource that another operation makes or deletes.
func NotReady(path string) error {
	return &Error{Status: http.StatusBadRequest, Reason: reasonNotReady, Message: fmt.Sprintf("The resource '%s' is not ready", path)}
}

// FingerprintMismatch refuses labels that were changed since the client read them.
func FingerprintMismatch() error {
	return &Error{
		Status: http.StatusPreconditionFailed, Reason: ReasonCondition,
		Message: "Labels fingerprint either invalid or resource labels have changed",
	}
}

// QuotaExceeded refuses what would exceed a quota of a region.
func QuotaExceeded(metric string, limit int64, region string) error {
	return &Error{
		Status: http.StatusForbidden, Reason: ReasonQuota,
		Message: fmt.Sprintf("Quota '%s' exceeded.  Limit: %d.0 in region %s.", metric, limit, region),
	}
}

// domain is what kind of rule an error is about.
func (e *Error) domain() string {
	switch e.Reason {
	case ReasonQuota, ReasonRate, ReasonLimit:
		return "usageLimits"
	default:
		return "global"
	}
}
