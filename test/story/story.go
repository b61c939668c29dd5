// Package story tells an end-to-end test as it happens: what is to hold, whether it
// does, and how long that took. The programs of such tests use it; it knows nothing
// of what they test.
package story

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Patience is how long anything may take: longer than all that an unmount
	// without its server may.
	Patience = 90 * time.Second

	// Tries are so far apart at first, and at last: whoever waits for long leaves the
	// machine to those who are waited for.
	shortest, longest = 100 * time.Millisecond, 500 * time.Millisecond
)

// Story tells and checks. After the first thing that doesn't hold it does nothing
// more, so that a chapter needs no error handling of its own.
type Story struct {
	Ctx context.Context
	// part is the name of one that others are told beside, and whole what it is part of.
	part   string
	whole  *Story
	began  time.Time
	checks atomic.Int32
	err    error
}

// New begins a story.
func New(ctx context.Context) *Story { return &Story{Ctx: ctx, began: time.Now()} }

// Part is a story of its own, that others can be told beside: each of its lines bears its
// name. What it checks counts for the whole; what doesn't hold is its own affair.
func (s *Story) Part(ctx context.Context, name string) *Story {
	return &Story{Ctx: ctx, part: name + ": ", whole: s, began: time.Now()}
}

// Chapter prints a heading.
func (s *Story) Chapter(title string) {
	if s.err == nil {
		fmt.Printf("\n%s\n\n", title)
	}
}

// Do does something, and checks that it succeeded. What says so.
func (s *Story) Do(what string, work func() error) {
	if s.err != nil {
		return
	}
	started := time.Now()
	if err := work(); err != nil {
		fmt.Printf("  ✗ %s%s  (%.1f s)\n", s.part, what, time.Since(started).Seconds())
		s.err = fmt.Errorf("it doesn't hold that %s: %w", what, err)
		return
	}
	for counts := s; counts != nil; counts = counts.whole {
		counts.checks.Add(1)
	}
	fmt.Printf("  ✓ %s%s  (%.1f s)\n", s.part, what, time.Since(started).Seconds())
}

// Soon does something until it succeeds, or Patience ends.
func (s *Story) Soon(what string, try func() error) {
	s.Do(what, func() error { return Eventually(s.Ctx, try) })
}

// Background begins work, which finish waits for.
func (s *Story) Background(work func() error) (finish func() error) {
	if s.err != nil {
		return nil
	}
	result := make(chan error, 1)
	go func() { result <- work() }()
	return func() error { return <-result }
}

// Err is what didn't hold.
func (s *Story) Err() error { return s.err }

// Fail ends the story.
func (s *Story) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// End is the verdict.
func (s *Story) End() error {
	if s.err == nil {
		fmt.Printf("\nAll %d checks held, in %.0f s.\n", s.checks.Load(), time.Since(s.began).Seconds())
	}
	return s.err
}

// Eventually tries until there is no error, or Patience ends.
func Eventually(ctx context.Context, try func() error) error { return Within(ctx, Patience, try) }

// Within is Eventually for what may take longer, or shorter, than most does.
func Within(ctx context.Context, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for pause, err := shortest, try(); err != nil; pause, err = min(2*pause, longest), try() {
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
