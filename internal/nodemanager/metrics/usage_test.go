package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// mountsAt are mounts whose file systems are asked.
func mountsAt(paths ...string) []ClaimMount {
	var mounts []ClaimMount
	for _, path := range paths {
		mounts = append(mounts, ClaimMount{Path: path})
	}
	return mounts
}

// ofDriver is a volume that its driver measures.
type ofDriver struct {
	calls atomic.Int32
	err   error
}

func (d *ofDriver) at(path string) ClaimMount {
	return ClaimMount{Path: path, Measure: func(context.Context) (volumes.Usage, error) {
		d.calls.Add(1)
		return volumes.Usage{Bytes: &volumes.Amount{Total: 5}}, d.err
	}}
}

func newUsagesOf(total uint64) *usages {
	u := newUsages()
	u.statfs = func(_ string, into *unix.Statfs_t) error {
		into.Blocks, into.Frsize = total, 1
		return nil
	}
	return u
}

func TestOnlyTheUsageOfAHangingFileSystemIsLeftOut(t *testing.T) {
	answer, calls := make(chan struct{}), atomic.Int32{}
	u := newUsagesOf(7)
	answers := u.statfs
	u.statfs = func(path string, into *unix.Statfs_t) error {
		if path == "hangs" {
			calls.Add(1)
			<-answer
		}
		return answers(path, into)
	}
	for range 3 {
		began := time.Now()
		known := u.measure(mountsAt("hangs", "answers"))
		if waited := time.Since(began); waited > 10*usageTimeout {
			t.Errorf("it waited for %s", waited)
		}
		if of := known["answers"]; !of.isFresh() || of.last.Bytes.Total != 7 {
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
	if known := u.measure(mountsAt("hangs")); !known["hangs"].isFresh() {
		t.Error("one that answers again has no usage")
	}
	if known := u.measure(nil); len(known) != 0 || len(u.of) != 0 {
		t.Errorf("unused paths are kept: %v", u.of)
	}
}

func TestOneScrapeMayForgetWhatAnotherMeasures(t *testing.T) {
	answer, asked := make(chan struct{}), make(chan struct{}, 1)
	u := newUsagesOf(7)
	answers := u.statfs
	u.statfs = func(path string, into *unix.Statfs_t) error {
		if path == "hangs" {
			asked <- struct{}{}
			<-answer
		}
		return answers(path, into)
	}
	first := make(chan map[string]usage)
	go func() { first <- u.measure(mountsAt("unmounted", "hangs")) }()
	<-asked
	u.measure(mountsAt("hangs"))
	close(answer)
	if known := <-first; !known["unmounted"].isFresh() {
		t.Errorf("the first has %v", known)
	}
}

func TestAUsageIsServedForALimitedTime(t *testing.T) {
	now := time.Now()
	long := now.Add(-usageLifetime - time.Second)
	tests := map[string]struct {
		usage         usage
		fresh, silent bool
	}{
		"never answered":                       {usage{}, false, false},
		"just answered":                        {usage{at: now}, true, false},
		"being measured":                       {usage{at: now.Add(-time.Minute), silent: now}, true, false},
		"silent for a while":                   {usage{at: now.Add(-time.Minute), silent: now.Add(-time.Minute)}, true, false},
		"silent for long":                      {usage{at: long, silent: long}, false, true},
		"not measured for long, and now begun": {usage{at: now.Add(-time.Hour), silent: now}, false, false},
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
	if known := u.measure(mountsAt("stale")); known["stale"].isFresh() || !known["stale"].silent.IsZero() {
		t.Errorf("its usage is %+v", known["stale"])
	}
}

func TestADriverMeasuresAVolumeOnceInItsInterval(t *testing.T) {
	u, driver := newUsagesOf(7), &ofDriver{}
	for range 3 {
		if of := u.measure([]ClaimMount{driver.at("a")})["a"]; !of.isFresh() || of.last.Bytes.Total != 5 {
			t.Errorf("it has %+v", of)
		}
	}
	u.of["a"].called = time.Now().Add(-driverInterval)
	u.measure([]ClaimMount{driver.at("a")})
	if calls := driver.calls.Load(); calls != 2 {
		t.Errorf("it was measured %d times", calls)
	}
}

func TestTheFileSystemIsAskedWhereTheDriverMeasuresNothing(t *testing.T) {
	u, driver := newUsagesOf(7), &ofDriver{err: fmt.Errorf("this one: %w", volumes.ErrNotSupported)}
	device := driver.at("device")
	device.IsDevice = true

	known := u.measure([]ClaimMount{driver.at("mount"), device})

	if of := known["mount"]; !of.isFresh() || of.last.Bytes.Total != 7 {
		t.Errorf("the mount has %+v", of)
	}
	if of := known["device"]; of.isFresh() {
		t.Errorf("the device has %+v", of)
	}
}

func TestADriverThatFailsHasNoUsageOfAnotherFileSystem(t *testing.T) {
	u, driver := newUsagesOf(7), &ofDriver{err: errors.New("it isn't there")}
	if of := u.measure([]ClaimMount{driver.at("a")})["a"]; of.isFresh() || !of.silent.IsZero() {
		t.Errorf("it has %+v", of)
	}
}

func TestADriverIsSilentUntilACallIsAnswered(t *testing.T) {
	u, driver := newUsagesOf(7), &ofDriver{err: fmt.Errorf("calling it: %w", context.DeadlineExceeded)}
	u.measure([]ClaimMount{driver.at("a")})
	u.of["a"].called, u.of["a"].silent = time.Now().Add(-driverInterval), time.Now().Add(-usageLifetime)
	if of := u.measure([]ClaimMount{driver.at("a")})["a"]; !of.isSilent() {
		t.Errorf("it has %+v", of)
	}
	u.of["a"].called, driver.err = time.Now().Add(-driverInterval), nil
	if of := u.measure([]ClaimMount{driver.at("a")})["a"]; of.isSilent() {
		t.Errorf("one that answers again has %+v", of)
	}
}
