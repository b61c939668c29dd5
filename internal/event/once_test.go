package event

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func TestATextIsNewOncePerKey(t *testing.T) {
	var once Once[string]
	for i, step := range []struct {
		key, text string
		forget    bool
		isNew     bool
	}{
		{key: "a", text: "broken", isNew: true},
		{key: "a", text: "broken"},
		{key: "a", text: "late", isNew: true},
		{key: "a", text: "broken"},
		{key: "b", text: "broken", isNew: true},
		{key: "a", text: "broken", forget: true, isNew: true},
		{key: "b", text: "broken"},
	} {
		if step.forget {
			once.Forget(step.key)
		}
		if got := once.IsNew(step.key, step.text); got != step.isNew {
			t.Errorf("step %d, %s of %s: got %v", i, step.text, step.key, got)
		}
	}
}

func TestTextsThatNeverRepeatAreBounded(t *testing.T) {
	var once Once[string]
	for i := range 10 * maxTexts {
		if !once.IsNew("a", strconv.Itoa(i)) {
			t.Fatalf("text %d isn't new", i)
		}
	}
	if of := once.texts["a"]; len(of.known) != maxTexts || len(of.order) != maxTexts {
		t.Errorf("it keeps %d texts, and the order of %d", len(of.known), len(of.order))
	}
	if once.IsNew("a", strconv.Itoa(10*maxTexts-1)) {
		t.Error("the last text is new again")
	}
	if !once.IsNew("a", "0") {
		t.Error("the first text is still known")
	}
	once.Forget("a")
	if len(once.texts) > 0 {
		t.Error("a key that was forgotten takes up memory")
	}
}

func TestOneOfManyCallersFindsATextNew(t *testing.T) {
	var once Once[string]
	var found atomic.Int32
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if once.IsNew("a", "broken") {
				found.Add(1)
			}
		})
	}
	wait.Wait()
	if found.Load() != 1 {
		t.Errorf("%d callers found it new", found.Load())
	}
}
