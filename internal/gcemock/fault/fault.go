// Package fault keeps what is to go wrong, and says for each call whether it does. Calls are refused,
// operations fail, are stuck or late, and answers are lost. The flag
// --fault and the admin endpoint arm faults; the server and the engine obey them.
//
// It never makes anything fail itself, and forgets all faults when the program ends.
package fault

import (
	"cmp"
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

// Parse reads a fault from JSON.
func Parse(text []byte, methods []string) (Fault, error) {
	var read Fault
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return Fault{}, fmt.Errorf("reading a fault: %w", err)
	}
	return read, read.Check(methods)
}

// Check checks a fault of a server that has these methods.
func (f Fault) Check(methods []string) error {
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

// Armed is one that is armed.
type Armed struct {
	Fault
	ID int `json:"id"`
	// Left is how many calls it is still for.
	Left int `json:"left,omitempty"`
	// removed is closed when it is removed.
	removed chan struct{}
}

// Latency is how long things take without a fault.
type Latency struct {
	// Answer is until a call is answered, and Operation until an operation is done.
	Answer, Operation time.Duration
}

// Set are all that are armed. They don't outlive the server.
type Set struct {
	mutex sync.Mutex
	last  int
	armed []*Armed
	delay Latency
	// down are the zones that are down, and silent those of them that can't be read.
	down, silent map[string]bool
	// keys are the states of those keys of Cloud KMS that can't be used.
	keys map[string]string
}

// NewSet makes a set without faults and latency.
func NewSet() *Set {
	return &Set{down: map[string]bool{}, silent: map[string]bool{}, keys: map[string]string{}}
}

// SetDown takes a zone down, or up again.
func (f *Set) SetDown(zone string, down bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.down[zone], f.silent[zone] = down, false
}

// SetSilent takes a zone down, so that it can't be read either.
func (f *Set) SetSilent(zone string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.down[zone], f.silent[zone] = true, true
}

// KeyDenied is the state of a key that the Compute Engine service agent may not use.
const KeyDenied = "DENIED"

// SetKey sets the state of a key of Cloud KMS: DISABLED, DESTROYED, KeyDenied, or ENABLED.
func (f *Set) SetKey(name, state string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.keys[name] = state
}

// Key is the state of a key of Cloud KMS.
func (f *Set) Key(name string) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return cmp.Or(f.keys[name], "ENABLED")
}

// IsSilent reports whether a zone can't be read.
func (f *Set) IsSilent(zone string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.silent[zone]
}

// IsDown reports whether a zone is down.
func (f *Set) IsDown(zone string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.down[zone]
}

// Add arms a fault, which was checked.
func (f *Set) Add(requested Fault) Armed {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.last++
	armed := &Armed{Fault: requested, ID: f.last, Left: requested.Count, removed: make(chan struct{})}
	f.armed = append(f.armed, armed)
	return *armed
}

// Remove removes one fault, or all for 0. It reports whether there were any.
func (f *Set) Remove(id int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	before := len(f.armed)
	f.armed = slices.DeleteFunc(f.armed, func(one *Armed) bool {
		gone := id == 0 || one.ID == id
		if gone {
			close(one.removed)
		}
		return gone
	})
	return len(f.armed) < before
}

// List lists the faults that are armed, those that are spent as well.
func (f *Set) List() []Armed {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	copied := []Armed{}
	for _, one := range f.armed {
		copied = append(copied, *one)
	}
	return copied
}

// Draw finds what goes wrong with a call; nil for nothing. Faults that were for a
// number of calls stay in the list when they are spent, since operations may be stuck.
func (f *Set) Draw(method string) *Armed {
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

// SetLatency sets how long things take from now on.
func (f *Set) SetLatency(delay Latency) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.delay = delay
}

// Latency is how long things take.
func (f *Set) Latency() Latency {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.delay
}

// LosesAnswer reports whether the client is not to hear of the effect. Nil is no fault.
func (f *Armed) LosesAnswer() bool { return f != nil && f.Lost }

// Sticks is closed when an operation that is stuck may go on; nil if it isn't stuck.
func (f *Armed) Sticks() <-chan struct{} {
	if f == nil || !f.Stuck {
		return nil
	}
	return f.removed
}
