package gce

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

func TestAMachineThatIsGoneIsSoThoughAPageOfTheListIsEmpty(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.plans(func(request *http.Request) fate {
		if strings.HasSuffix(request.URL.Path, "/instances") && request.URL.Query().Get("pageToken") == "" {
			return unfinished
		}
		return served
	})
	if got, err := on.ObserveNode(t.Context(), node("node-9")); err != nil || got != backend.MachineGone {
		t.Errorf("%q, %v", got, err)
	}
	w.must(on.Detach(t.Context(), "pvc-1", node("node-9")))
}
