package scenario

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWhatComesTrueIsWaitedFor(t *testing.T) {
	tries := 0
	err := Within(t.Context(), time.Minute, func() error {
		tries++
		if tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

func TestPatienceEndsWithTheLastError(t *testing.T) {
	err := Within(t.Context(), time.Millisecond, func() error { return errors.New("the disk is there") })
	if err == nil || !strings.Contains(err.Error(), "the disk is there") {
		t.Errorf("it says %v", err)
	}
}

func TestASpecThatTimesOutWaitsForNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Within(ctx, time.Minute, func() error { return errors.New("no") }); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}
