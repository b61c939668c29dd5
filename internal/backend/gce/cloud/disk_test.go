package cloud

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

func TestAnIncompleteListIsAnError(t *testing.T) {
	if err := checkReached([]string{"zones/europe-west3-a"}); backend.KindOf(err) != backend.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := checkReached(nil); err != nil {
		t.Errorf("got %v", err)
	}
}
