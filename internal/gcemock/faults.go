package gcemock

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is something that goes wrong with calls of a method. As JSON it is what the
// flag --fault and the admin endpoint take.
type Fault struct {
	// Method is which calls it is for, such as instances.attachDisk; * stands for any
	// part. Required.
	Method string `json:"method"`
	// Count is how many calls it is for; 0: all.
	Count int `json:"count,omitempty"`
	// Rate is how likely it is for each call, above 0 up to 1. Default 1.
	Rate float64 `json:"rate,omitempty"`

	// Status refuses the call with this HTTP status, such as 429, 503 or 403.
	Status int `json:"status,omitempty"`
	// Reason is that of the refusal. Default: rateLimitExceeded, backendError,
	// quotaExceeded for those three.
	Reason string `json:"reason,omitempty"`
	// RetryAfter is what the refusal says, such as 2s.
	RetryAfter Duration `json:"retryAfter,omitempty"`
	// Operation ends the operation in error with this code, such as
	// RESOURCE_IN_USE_BY_ANOTHER_RESOURCE; nothing was changed then.
	Operation string `json:"operation,omitempty"`
	// Message is what refusals and operations say.
	Message string `json:"message,omitempty"`
	// Stuck keeps the operation running until the fault is removed.
	Stuck bool `json:"stuck,omitempty"`
	// Delay makes the operation take this much longer.
	Delay Duration `json:"delay,omitempty"`
	// Lost drops the connection once the call took effect.
	Lost bool `json:"lost,omitempty"`
}

// Duration is a time.Duration that is written as 2s in JSON.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// parseFault reads a fault from JSON.
func parseFault(text []byte, methods []string) (Fault, error) {
	var read Fault
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return Fault{}, fmt.Errorf("reading a fault: %w", err)
	}
	return read, read.check(methods)
}

func (f Fault) check(methods []string) error {
	known := slices.ContainsFunc(methods, func(method string) bool { return matches(f.Method, method) })
	switch {
	case !known:
		return fmt.Errorf("no method is called %q", f.Method)
	case f.Rate < 0 || f.Rate > 1 || f.Count < 0:
		return fmt.Errorf("a fault's rate is between 0 and 1, and its count not negative")
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("%d is no status of an error", f.Status)
	case f.Status == 0 && f.Operation == "" && !f.Stuck && !f.Lost && f.Delay == 0:
		return fmt.Errorf("a fault has one of status, operation, stuck, delay and lost")
	}
	return nil
}

func matches(pattern, method string) bool {
	matched, err := path.Match(pattern, method)
	return matched && err == nil
}

// fault is one that is armed.
type fault struct {
	Fault
	ID int `json:"id"`
	// Left is how many calls it is still for.
	Left int `json:"left,omitempty"`
	// removed is closed when it is taken away.
	removed chan struct{}
}

// latency is how long things take without a fault.
type latency struct {
	// Answer is until a call is answered, and Operation until an operation is done.
	Answer, Operation time.Duration
}

// faults are all that are armed. They don't outlive the server.
type faults struct {
	mutex sync.Mutex
	last  int
	armed []*fault
	delay latency
}

func newFaults() *faults { return &faults{} }

func (f *faults) add(asked Fault) fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.last++
	armed := &fault{Fault: asked, ID: f.last, Left: asked.Count, removed: make(chan struct{})}
	f.armed = append(f.armed, armed)
	return *armed
}

// remove takes faults away: one, or all for 0. It says whether there were any.
func (f *faults) remove(id int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	before := len(f.armed)
	f.armed = slices.DeleteFunc(f.armed, func(one *fault) bool {
		gone := id == 0 || one.ID == id
		if gone {
			close(one.removed)
		}
		return gone
	})
	return len(f.armed) < before
}

func (f *faults) list() []fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	copied := []fault{}
	for _, one := range f.armed {
		copied = append(copied, *one)
	}
	return copied
}

// draw finds what goes wrong with a call; nil for nothing. Faults that were for a
// number of calls stay in the list when they are spent, since operations may be stuck.
func (f *faults) draw(method string) *fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, one := range f.armed {
		spent := one.Count > 0 && one.Left == 0
		if spent || !matches(one.Method, method) || one.Rate > 0 && rand.Float64() >= one.Rate {
			continue
		}
		if one.Left > 0 {
			one.Left--
		}
		drawn := *one
		return &drawn
	}
	return nil
}

func (f *faults) set(delay latency) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.delay = delay
}

func (f *faults) latency() latency {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.delay
}

func (f *fault) losesAnswer() bool { return f != nil && f.Lost }

// sticks is closed when an operation that is stuck may go on; nil if it isn't stuck.
func (f *fault) sticks() <-chan struct{} {
	if f == nil || !f.Stuck {
		return nil
	}
	return f.removed
}
