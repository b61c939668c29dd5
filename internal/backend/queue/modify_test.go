package queue_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

func TestACallToGrowAVolumeDoesNotReplaceTheAnswerOfItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, woken := newDesk(t, 1), make(chan struct{}, 100)
		d.SetLatency(time.Second)
		driver := d.queue.Serve(queue.Target{Name: "disks", Limit: 1}, fake.NewCSI(d.Backend), func() { woken <- struct{}{} })
		for range 10 {
			if _, err := backend.Expand(t.Context(), driver, backend.ExpandRequest{ID: "projects/demo/zones/a/disks/absent", Capacity: resource.MustParse("2Gi")}); err == nil {
				t.Fatal("a volume that isn't there has grown")
			}
			err := backend.Modify(t.Context(), driver, "projects/demo/zones/a/disks/absent", backend.Attributes{Class: "gold"})
			if errors.Is(err, backend.NotFound) {
				return
			}
			if !errors.Is(err, backend.Queued) {
				t.Fatalf("the change answers %v", err)
			}
			<-woken
		}
		t.Error("the change has no answer")
	})
}
