package backend

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind is what an error of a backend means for its caller. It is an error itself, so
// errors.Is(err, backend.Exhausted) checks it.
type ErrorKind string

// Kinds of error. An error of none of them has an unknown outcome: the call may
// have had, or may still have, its effect.
const (
	// NotFound: the volume doesn't exist.
	NotFound ErrorKind = "NotFound"
	// Invalid: no repeat helps until a spec is changed.
	Invalid ErrorKind = "Invalid"
	// Exhausted: there is no room, or no quota, now.
	Exhausted ErrorKind = "Exhausted"
	// WrongNode: the requested node can't have it; another may.
	WrongNode ErrorKind = "WrongNode"
	// Conflict: the storage belongs to another owner, or is used elsewhere.
	Conflict ErrorKind = "Conflict"
	// Queued: the call has not begun, or has no answer yet; the caller is woken and repeats it.
	Queued ErrorKind = "Queued"
	// InProgress: work is known to go on; repeat the call.
	InProgress ErrorKind = "InProgress"
	// NotReady: the storage refused, because a resource isn't ready or just changed. The call did
	// nothing and nothing goes on. A repeat soon helps, or the refusal is reported.
	NotReady ErrorKind = "NotReady"
	// Unavailable: the storage didn't take the call; repeat it later.
	Unavailable ErrorKind = "Unavailable"
)

// Error makes the kind an error value.
func (k ErrorKind) Error() string { return string(k) }

// Errorf makes an error of this kind, with a text for people. The verb %w keeps
// a cause, but for the cause's kind: an error has one.
func (k ErrorKind) Errorf(format string, arguments ...any) error {
	return &kindError{kind: k, err: fmt.Errorf(format, arguments...)}
}

// KindOf is the kind of an error, or "" where its outcome is unknown.
func KindOf(err error) ErrorKind {
	var kind ErrorKind
	var of *kindError
	switch {
	case errors.As(err, &of):
		return of.kind
	case errors.As(err, &kind):
		return kind
	default:
		return ""
	}
}

// Unfinished reports whether the call of an error, or what it began, goes on: its outcome isn't
// known yet, and it is to be repeated.
func Unfinished(err error) bool {
	return errors.Is(err, InProgress) || errors.Is(err, Queued)
}

// Refused marks an error of a call that the storage itself refused for good: of that request it has nothing.
func Refused(err error) error { return refusal{err} }

// IsRefusal reports whether an error was marked by Refused.
func IsRefusal(err error) bool {
	var of refusal
	return errors.As(err, &of)
}

type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// PausedUntil is the end of a pause that the storage asked for, in an error of kind Unavailable. No
// call was made, and none is made before that time. Zero for other errors.
func PausedUntil(err error) time.Time {
	var paused interface{ PausedUntil() time.Time }
	if errors.As(err, &paused) {
		return paused.PausedUntil()
	}
	return time.Time{}
}

type kindError struct {
	kind ErrorKind
	err  error
}

func (e *kindError) Error() string        { return e.err.Error() }
func (e *kindError) Unwrap() error        { return cause{e.err} }
func (e *kindError) Is(target error) bool { return target == e.kind }

// cause is the error that an error with a kind wraps, without its kinds.
type cause struct{ error }

func (c cause) Is(target error) bool {
	_, isKind := target.(ErrorKind)
	return !isKind && errors.Is(c.error, target)
}

func (c cause) As(target any) bool {
	switch target.(type) {
	case *ErrorKind, **kindError:
		return false
	}
	return errors.As(c.error, target)
}
