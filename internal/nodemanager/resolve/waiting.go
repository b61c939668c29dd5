package resolve

import (
	"errors"
	"fmt"
)

type waitError struct{ message string }

func (e *waitError) Error() string { return e.message }

// WaitFor returns an error with what a volume waits for: it isn't a failure. See IsWait.
func WaitFor(format string, arguments ...any) error {
	return &waitError{message: fmt.Sprintf(format, arguments...)}
}

// IsWait reports whether an error is from WaitFor.
func IsWait(err error) bool {
	var wait *waitError
	return errors.As(err, &wait)
}
