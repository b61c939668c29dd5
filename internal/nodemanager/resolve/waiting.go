package resolve

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
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

// PendingIfUnreadable makes an error of package content one to wait for, if it lasts only until the
// API server knows that the pod is on this node.
func PendingIfUnreadable(err error) error {
	if errors.Is(err, content.ErrMissing) && apierrors.IsForbidden(err) {
		return WaitFor("waiting: %v", err)
	}
	return err
}
