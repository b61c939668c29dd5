// Package republication remembers when a volume was last published again, for drivers that renew what
// is in their volumes so. It publishes nothing.
package republication

import (
	"sync"
	"time"
)

// Interval is how often a volume is published again: about as often as by a kubelet.
const Interval = time.Minute

// Republication is when one volume was last published again. Its zero value is usable. A restart
// begins with a whole interval.
type Republication struct {
	mu   sync.Mutex
	last time.Time
	err  error
}

// Due returns how long it is until the next one, and the error of the last one. If that time is over,
// the next one counts as begun.
func (r *Republication) Due(now time.Time) (left time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.IsZero() {
		r.last = now
	}
	if left = r.last.Add(Interval).Sub(now); left <= 0 {
		r.last = now
	}
	return left, r.err
}

// End records how one ended, and returns that.
func (r *Republication) End(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	return err
}
