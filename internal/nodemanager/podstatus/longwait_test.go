package podstatus

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestALongWaitIsRecordedOnce(t *testing.T) {
	const pending, ready = stowagev1alpha1.ReasonPending, stowagev1alpha1.ReasonReady
	start := time.Now()
	var wait LongWait
	var recorded event.Once[types.UID]
	for _, step := range []struct {
		after           time.Duration
		reason, message string
		isNew           bool
	}{
		{0, pending, "for a claim", false},
		{30 * time.Second, pending, "for a claim", false},
		{60 * time.Second, pending, "for a claim", true},
		{70 * time.Second, pending, "for a claim", false},
		{80 * time.Second, pending, "for a disk", false},
		{100 * time.Second, pending, "for a claim", false},
		{200 * time.Second, pending, "for a claim", false},
		{201 * time.Second, pending, "for a disk", false},
		{270 * time.Second, pending, "for a disk", true},
		{280 * time.Second, ready, "all there", false},
		{400 * time.Second, ready, "all there", false},
		{410 * time.Second, pending, "for a server", false},
		{469 * time.Second, pending, "for a server", false},
		{470 * time.Second, pending, "for a server", true},
	} {
		condition := corev1.PodCondition{Reason: step.reason, Message: step.message}
		isNew := wait.IsLong(condition, start.Add(step.after)) && recorded.IsNew(nodetest.SomePod, step.message)
		if isNew != step.isNew {
			t.Errorf("after %s, of a pod that waits %s, an event is new: %v", step.after, step.message, isNew)
		}
	}
}
