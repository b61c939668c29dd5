// Package scenario has the steps of end-to-end specs: sentences that Ginkgo reports one by
// one, with what is checked by each. It knows nothing of what they test.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
)

const (
	// Patience is how long anything may take: longer than all that an unmount
	// without its server may.
	Patience = 90 * time.Second

	// Tries are so far apart at first, and at last: a spec that waits for long leaves the
	// machine to what it waits for.
	shortest, longest = 100 * time.Millisecond, 500 * time.Millisecond
)

// Step is a step of a spec, which fails unless the work succeeds. What is the sentence that
// holds then. The number of steps of a suite is printed at its end.
func Step(what string, work func() error) {
	ginkgo.GinkgoHelper()
	var err error
	ginkgo.By(what, func() { err = work() })
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("it doesn't hold that %s: %v", what, err))
	}
}

// Soon is a step that is tried until it succeeds, or Patience ends.
func Soon(ctx context.Context, what string, try func() error) {
	ginkgo.GinkgoHelper()
	Step(what, func() error { return Eventually(ctx, try) })
}

// Background begins work, which finish waits for.
func Background(work func() error) (finish func() error) {
	result := make(chan error, 1)
	go func() { result <- work() }()
	return func() error { return <-result }
}

// Eventually tries until there is no error, or Patience ends.
func Eventually(ctx context.Context, try func() error) error { return Within(ctx, Patience, try) }

// Within is Eventually for what may take longer, or shorter, than most does. Ginkgo's progress
// reports have the last error.
func Within(ctx context.Context, patience time.Duration, try func() error) error {
	var last atomic.Pointer[error]
	defer ginkgo.AttachProgressReporter(func() string {
		if err := last.Load(); err != nil {
			return "it still doesn't hold: " + (*err).Error()
		}
		return ""
	})()
	deadline := time.Now().Add(patience)
	for pause, err := shortest, try(); err != nil; pause, err = min(2*pause, longest), try() {
		last.Store(&err)
		if time.Now().After(deadline) {
			return fmt.Errorf("for %s: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
	return nil
}
