package resolve

import (
	"errors"
	"fmt"
)

// waitError says what a volume waits for: nothing is wrong.
type waitError struct{ message string }

func (e *waitError) Error() string { return e.message }

// WaitFor returns an error that says what a volume waits for: nothing is wrong. See IsWait.
func WaitFor(format string, arguments ...any) error {
	return &waitError{message: fmt.Sprintf(format, arguments...)}
}

// IsWait says whether an error is only something that takes its time.
func IsWait(err error) bool {
	var wait *waitError
	return errors.As(err, &wait)
}
