package nodemanager

import (
	"errors"
	"fmt"
)

// waitError says what a volume waits for: nothing is wrong.
type waitError struct{ message string }

func (e *waitError) Error() string { return e.message }

func waitFor(format string, arguments ...any) error {
	return &waitError{message: fmt.Sprintf(format, arguments...)}
}

// isWait says whether an error is only something that takes its time.
func isWait(err error) bool {
	var wait *waitError
	return errors.As(err, &wait)
}
