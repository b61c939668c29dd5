package atomicdir_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/atomicdir"
)

var errCut = errors.New("cut off")

// cutOff is a context that ends at the n-th look at it, and so cuts a write off at its
// n-th step. A write undoes nothing when that happens: what it leaves is what a crash
// leaves.
type cutOff struct {
	context.Context
	left int
}

func (c *cutOff) Err() error {
	c.left--
	if c.left < 0 {
		return errCut
	}
	return nil
}

// writeUntil cuts a write off, and says whether it was done before.
func (v *volume) writeUntil(step int, files content.Files) (done bool) {
	v.t.Helper()
	err := atomicdir.Write(&cutOff{v.t.Context(), step}, v.root, files, v.group)
	if err != nil && !errors.Is(err, errCut) {
		v.t.Fatalf("cut off at step %d: %v", step, err)
	}
	return err == nil
}

// atEachStep runs a test for a volume whose write was cut off at each step, after what
// else was written before.
func atEachStep(t *testing.T, files content.Files, written []content.Files, test func(v *volume)) {
	t.Helper()
	const fewest = 8
	for step := 0; ; step++ {
		v := newVolume(t)
		for _, earlier := range written {
			v.write(earlier)
		}
		done := v.writeUntil(step, files)
		test(v)
		if done && step < fewest {
			t.Errorf("it was cut off at only %d steps", step)
		}
		if done || t.Failed() {
			return
		}
	}
}

func TestAfterACrashAtAnyStepTheNextWriteConverges(t *testing.T) {
	for _, written := range [][]content.Files{nil, {before()}} {
		for _, next := range []content.Files{before(), after(), {}} {
			atEachStep(t, after(), written, func(v *volume) {
				v.write(next)
				v.mustShow(next)
			})
		}
	}
}

func TestAfterACrashAtAnyTwoStepsTheNextWriteConverges(t *testing.T) {
	for second := 0; second < 40; second += 7 {
		atEachStep(t, after(), []content.Files{before()}, func(v *volume) {
			v.writeUntil(second, before())
			v.write(after())
			v.mustShow(after())
		})
	}
}

//proves:objects/crash
func TestACrashNeverLeavesHalfOfTheFirstFiles(t *testing.T) {
	atEachStep(t, before(), nil, func(v *volume) {
		if atomicdir.IsWritten(v.root) {
			v.mustShow(before())
		}
	})
}

//proves:objects/crash
func TestACrashNeverMixesOldFilesWithNewOnes(t *testing.T) {
	atEachStep(t, after(), []content.Files{before()}, func(v *volume) {
		a, err := os.ReadFile(v.at("a"))
		v.must(err)
		// One file of each version tells which it is.
		_, gone := os.Stat(v.at("gone/d"))
		_, made := os.Stat(v.at("top"))
		isOld, isNew := string(a) == "1" && gone == nil && made != nil, string(a) == "one" && gone != nil && made == nil
		if !isOld && !isNew {
			t.Errorf("a is %q, gone: %v, top: %v", a, gone, made)
		}
	})
}

func TestWhatACrashLeftTakesNoSpaceOnceTheNextWriteBegins(t *testing.T) {
	v := newVolume(t)
	for range 5 {
		v.writeUntil(7, before())
	}
	if got := len(v.names()); got > 4 {
		t.Errorf("%d names lie there: %q", got, v.names())
	}
}
