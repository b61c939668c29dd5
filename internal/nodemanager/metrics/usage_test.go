package metrics

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOnlyTheUsageOfAHangingFileSystemIsLeftOut(t *testing.T) {
	answer, calls := make(chan struct{}), atomic.Int32{}
	u := newUsages()
	u.statfs = func(path string, into *unix.Statfs_t) error {
		if path == "hangs" {
			calls.Add(1)
			<-answer
		}
		into.Blocks = 7
		return nil
	}
	for range 3 {
		began := time.Now()
		known := u.measure([]string{"hangs", "answers"})
		if waited := time.Since(began); waited > 10*usageTimeout {
			t.Errorf("it waited for %s", waited)
		}
		if of := known["answers"]; !of.isFresh() || of.last.Blocks != 7 {
			t.Errorf("the answering one has %+v", of)
		}
		if known["hangs"].isFresh() {
			t.Error("the hanging one has a usage")
		}
	}
	if count := calls.Load(); count != 1 {
		t.Errorf("the hanging one was measured %d times", count)
	}
	close(answer)
	if known := u.measure([]string{"hangs"}); !known["hangs"].isFresh() {
		t.Error("one that answers again has no usage")
	}
	if known := u.measure(nil); len(known) != 0 || len(u.of) != 0 {
		t.Errorf("unused paths are kept: %v", u.of)
	}
}

func TestAUsageIsServedForALimitedTime(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		usage         usage
		fresh, silent bool
	}{
		"never answered":                       {usage{}, false, false},
		"just answered":                        {usage{at: now}, true, false},
		"being measured":                       {usage{at: now.Add(-time.Minute), began: now}, true, false},
		"silent for a while":                   {usage{at: now.Add(-time.Minute), began: now.Add(-time.Minute)}, true, false},
		"silent for long":                      {usage{at: now.Add(-usageLifetime - time.Second), began: now.Add(-usageLifetime)}, false, true},
		"not measured for long, and now begun": {usage{at: now.Add(-time.Hour), began: now}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.usage.isFresh() != test.fresh || test.usage.isSilent() != test.silent {
				t.Errorf("fresh: %v, silent: %v", test.usage.isFresh(), test.usage.isSilent())
			}
		})
	}
}

func TestAFileSystemThatFailsHasNoUsage(t *testing.T) {
	u := newUsages()
	u.statfs = func(string, *unix.Statfs_t) error { return errors.New("stale file handle") }
	if known := u.measure([]string{"stale"}); known["stale"].isFresh() {
		t.Errorf("its usage is %+v", known["stale"])
	}
}
