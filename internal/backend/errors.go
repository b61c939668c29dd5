package backend

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind says what an error of a backend means for its caller. It is itself
// an error, so that errors.Is(err, backend.Exhausted) asks for it.
type ErrorKind string

// Kinds of error. An error of none of them has an unknown outcome: the call may
// have had, or may still have, its effect.
const (
	// NotFound: what was asked about isn't there.
	NotFound ErrorKind = "NotFound"
	// Invalid: no repeat helps until a spec is changed.
	Invalid ErrorKind = "Invalid"
	// Exhausted: there is no room, or no quota, now.
	Exhausted ErrorKind = "Exhausted"
	// WrongNode: the node that was asked for can't have it; another may.
	WrongNode ErrorKind = "WrongNode"
	// Conflict: what is there belongs to another, or is used by another.
	Conflict ErrorKind = "Conflict"
	// Queued: the call has not begun, or its answer is not there; whoever called
	// is woken and repeats it.
	Queued ErrorKind = "Queued"
	// InProgress: work is known to go on; repeat the call.
	InProgress ErrorKind = "InProgress"
	// NotReady: the storage refused, because what is needed isn't ready or just changed.
	// The call did nothing and nothing goes on. A repeat soon helps, or the refusal is told.
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

// Unfinished tells of an error that the call, or what it began, goes on: nothing is
// known of it yet, and it is to be repeated.
func Unfinished(err error) bool {
	return errors.Is(err, InProgress) || errors.Is(err, Queued)
}

// PausedUntil is how long the storage asked to be left alone, of an error of kind
// Unavailable: no call was made, and none is before that. The zero time where an error
// doesn't say so.
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

// cause is what an error with a kind wraps: all that is in it, but for kinds.
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
