// Package reason finds why the Compute API refused something, and what that means to a caller and to an administrator.
package reason

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
)

// ErrSent marks a call that may have changed something.
var ErrSent = errors.New("the call may have taken effect")

// operationError is the error of an operation: it changed nothing.
type operationError struct{ code, message string }

// Error implements error.
func (f *operationError) Error() string { return f.code + ": " + f.message }

// Failure is the error of an operation; nil where it succeeded.
func Failure(ended *compute.Operation) error {
	switch {
	case ended.Error != nil && len(ended.Error.Errors) > 0:
		first := ended.Error.Errors[0]
		return &operationError{code: first.Code, message: first.Message}
	case ended.Error != nil || ended.HttpErrorStatusCode >= http.StatusBadRequest:
		return &operationError{code: "UNKNOWN", message: ended.HttpErrorMessage}
	default:
		return nil
	}
}

// Reason is why the API refused something, in one spelling: calls use quotaExceeded, and operations
// QUOTA_EXCEEDED.
type Reason string

// Reasons on which callers decide, and others that only have a meaning.
const (
	None            Reason = ""
	InUse           Reason = "resourceinusebyanotherresource"
	NotReady        Reason = "resourcenotready"
	Exists          Reason = "alreadyexists"
	NotFound        Reason = "notfound"
	ConditionNotMet Reason = "conditionnotmet"
	overQuota       Reason = "quotaexceeded"
	zoneFull        Reason = "zoneresourcepoolexhausted"
	OverLimit       Reason = "limitexceeded"
	tooFast         Reason = "ratelimitexceeded"
	Invalid         Reason = "invalid"
	Forbidden       Reason = "forbidden"
	signedOut       Reason = "autherror"
	unready         Reason = "unavailable"
	KeyUnusable     Reason = "kmspermissiondenied" // any that begins with kms
	apiMissing      Reason = "accessnotconfigured"
	noAPI           Reason = "noapi" // Stowage's own
)

// spellings are other words for the same reason.
var spellings = map[Reason]Reason{
	"resourcenotfound": NotFound, "resourcealreadyexists": Exists, "conflict": InUse,
	"zoneresourcepoolexhaustedwithdetails": zoneFull,
	"userratelimitexceeded":                tooFast, "resourceoperationrateexceeded": tooFast, "concurrentoperationsquotaexceeded": tooFast,
	"invalidusage": Invalid, "invalidfieldvalue": Invalid, "badrequest": Invalid, "required": Invalid,
	"unsupportedoperation": Invalid, "parseerror": Invalid, "invalidparameter": Invalid,
	"insufficientpermissions": Forbidden, "permissionserror": Forbidden, "servicedisabled": apiMissing,
	"unauthorized": signedOut,
}

// byStatus is the reason of an HTTP status in an answer without a known reason. Any server answers
// 404 for an unknown path: only the API itself can say that a disk is gone.
var byStatus = map[int]Reason{
	http.StatusBadRequest: Invalid, http.StatusUnauthorized: signedOut, http.StatusForbidden: Forbidden,
	http.StatusNotFound: noAPI, http.StatusConflict: Exists, http.StatusPreconditionFailed: ConditionNotMet,
	http.StatusTooManyRequests: tooFast, http.StatusServiceUnavailable: unready,
}

// Of is why the API refused; None for an error that comes from elsewhere, has an unknown
// reason, or already has a kind. It never reads texts for people.
func Of(err error) Reason {
	var refusal *googleapi.Error
	var ended *operationError
	switch {
	case backend.KindOf(err) != "":
		return None
	case errors.As(err, &ended):
		return normalize(ended.code)
	case !errors.As(err, &refusal):
		return None
	}
	for _, item := range refusal.Errors {
		if known := normalize(item.Reason); meanings[known].kind != "" {
			return known
		}
	}
	return byStatus[refusal.Code]
}

// IsNoZone reports whether the API itself refused a call for a zone that it doesn't have. Another server's 400 says nothing.
func IsNoZone(err error) bool {
	var refusal *googleapi.Error
	return Of(err) == Invalid && errors.As(err, &refusal) && len(refusal.Errors) > 0
}

func normalize(word string) Reason {
	said := Reason(strings.ToLower(strings.ReplaceAll(word, "_", "")))
	if usual, other := spellings[said]; other {
		return usual
	}
	if strings.HasPrefix(string(said), "kms") {
		return KeyUnusable // denied, disabled, destroyed, or out of reach
	}
	if strings.HasSuffix(string(said), string(overQuota)) {
		return overQuota // a region's, or a zone's
	}
	return said
}

// meaning is the kind of a reason, for callers, and advice for an administrator.
type meaning struct {
	kind   backend.ErrorKind
	advice string
}

var meanings = map[Reason]meaning{
	InUse:           {backend.Conflict, "it is in use"},
	NotReady:        {backend.Unavailable, "what it needs isn't ready: it is tried again"},
	Exists:          {backend.Conflict, "there is one of this name"},
	NotFound:        {backend.NotFound, "there is no such thing"},
	ConditionNotMet: {backend.Invalid, "a constraint of the project or of its organization forbids it: change the policies of project %[1]s, or ask its administrator"},
	overQuota:       {backend.Exhausted, "a quota of project %[1]s is used up: raise it, or delete disks"},
	zoneFull:        {backend.Exhausted, "the zone has no room now: wait, or use another zone"},
	OverLimit:       {backend.Exhausted, "a limit is reached"},
	tooFast:         {backend.Unavailable, "there are too many calls for project %[1]s: it is tried again"},
	Invalid:         {backend.Invalid, "the Compute API takes no such request: look at gce.project, gce.zones, gce.diskType, gce.labels, gce.provisionedIOPS and gce.encryptionKey, and at the claim's StorageClass and VolumeAttributesClass"},
	Forbidden:       {backend.Unavailable, "%[2]s may not do that in project %[1]s: grant the roles compute.instanceAdmin.v1 and iam.serviceAccountUser"},
	KeyUnusable:     {backend.Unavailable, "Cloud KMS refuses the encryption key: enable its version, or grant the Compute Engine service agent of project %[1]s the role cloudkms.cryptoKeyEncrypterDecrypter on it"},
	apiMissing:      {backend.Unavailable, "switch the Compute Engine API on in project %[1]s"},
	signedOut:       {backend.Unavailable, "%[2]s isn't accepted: renew it, or set gce.credentialsSecret"},
	noAPI:           {backend.Unavailable, "no Compute API answers there: correct gce.endpoint"},
	unready:         {backend.Unavailable, "the Compute API isn't ready: it is tried again"},
}

// Caller is what calls the API, as errors name it.
type Caller struct{ Project, Credentials string }

// Translate gives an error its kind and advice. An error that may have had an effect gets no kind.
func (c Caller) Translate(doing string, err error) error {
	if backend.KindOf(err) != "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	known := meaningOf(err)
	if known.kind == "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	advice := strings.NewReplacer("%[1]s", c.Project, "%[2]s", c.Credentials).Replace(known.advice)
	return known.kind.Errorf("%s: %s (%w)", doing, advice, err)
}

// NotNow translates the error of a change that wasn't made, for a reason that may pass: nothing of it goes on. It leaves other
// errors as they are.
func (c Caller) NotNow(doing string, err error) error {
	var ended *operationError
	kind := meaningOf(err).kind
	if kind != backend.Exhausted && (kind != backend.Unavailable || !errors.As(err, &ended)) || backend.KindOf(err) != "" {
		return err
	}
	return backend.NotReady.Errorf("%v", c.Translate(doing, err))
}

func meaningOf(err error) meaning {
	var paused *transport.PausedError
	var ended *operationError
	known, understood := meanings[Of(err)]
	switch {
	case errors.As(err, &paused):
		return meaning{backend.Unavailable, "it is tried again later"}
	case errors.Is(err, transport.ErrCredentials):
		return meaning{backend.Unavailable, "signing in with %[2]s goes wrong: renew it, or let the manager through to the server that issues tokens"}
	case errors.Is(err, transport.ErrUnreachable):
		return meaning{backend.Unavailable, "the Compute API can't be reached: look at gce.endpoint, or let the manager through to it"}
	case understood:
		return known
	case errors.As(err, &ended):
		return meaning{backend.Unavailable, "the operation ended in error and changed nothing: it is tried again"}
	case errors.Is(err, ErrSent):
		return meaning{}
	default:
		return meaning{backend.Unavailable, "the Compute API doesn't answer: look after it, or after the way there"}
	}
}
