package metrics

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOnlyWhatDoesNotAnswerIsLeftOut(t *testing.T) {
	answer, asked := make(chan struct{}), atomic.Int32{}
	u := newUsages()
	u.statfs = func(path string, into *unix.Statfs_t) error {
		if path == "hangs" {
			asked.Add(1)
			<-answer
		}
		into.Blocks = 7
		return nil
	}
	for range 3 {
		began := time.Now()
		known := u.look([]string{"hangs", "answers"})
		if waited := time.Since(began); waited > 10*usagePatience {
			t.Errorf("it was waited for %s", waited)
		}
		if of := known["answers"]; !of.isFresh() || of.said.Blocks != 7 {
			t.Errorf("of what answers there is %+v", of)
		}
		if known["hangs"].isFresh() {
			t.Error("something is told of what doesn't answer")
		}
	}
	if count := asked.Load(); count != 1 {
		t.Errorf("what hangs was asked %d times", count)
	}
	close(answer)
	if known := u.look([]string{"hangs"}); !known["hangs"].isFresh() {
		t.Error("nothing is told of what answers again")
	}
	if known := u.look(nil); len(known) != 0 || len(u.of) != 0 {
		t.Errorf("what isn't asked for any more is kept: %v", u.of)
	}
}

func TestWhatWasSaidIsToldForATimeOnly(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		usage         usage
		fresh, silent bool
	}{
		"never answered":                    {usage{}, false, false},
		"just answered":                     {usage{at: now}, true, false},
		"being asked":                       {usage{at: now.Add(-time.Minute), asked: now}, true, false},
		"silent for a while":                {usage{at: now.Add(-time.Minute), asked: now.Add(-time.Minute)}, true, false},
		"silent for long":                   {usage{at: now.Add(-usageLasts - time.Second), asked: now.Add(-usageLasts)}, false, true},
		"not asked for long, and now asked": {usage{at: now.Add(-time.Hour), asked: now}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.usage.isFresh() != test.fresh || test.usage.isSilent() != test.silent {
				t.Errorf("fresh: %v, silent: %v", test.usage.isFresh(), test.usage.isSilent())
			}
		})
	}
}

func TestAFileSystemThatFailsIsNoAnswer(t *testing.T) {
	u := newUsages()
	u.statfs = func(string, *unix.Statfs_t) error { return errors.New("stale file handle") }
	if known := u.look([]string{"stale"}); known["stale"].isFresh() {
		t.Errorf("it is told that %+v", known["stale"])
	}
}
