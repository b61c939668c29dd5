package nodemanager

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
)

func TestWhatIsWaitedForLongIsToldOnce(t *testing.T) {
	const pending, ready = stowagev1alpha1.ReasonPending, stowagev1alpha1.ReasonReady
	start := time.Now()
	var wait longWait
	var recorded event.Once[types.UID]
	for _, step := range []struct {
		after           time.Duration
		reason, message string
		told            bool
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
		told := wait.isLong(condition, start.Add(step.after)) && recorded.IsNew(somePod, step.message)
		if told != step.told {
			t.Errorf("after %s, of a pod that waits %s, it is told: %v", step.after, step.message, told)
		}
	}
}

func TestAPodThatWaitsLongForItsClaimHasAnEvent(t *testing.T) {
	pod := podWith(claimVolume("data", false))
	pod.Spec.NodeName = "n1"
	api := clientWith(interceptor.Funcs{}, pod)
	bench := newBench(t, api, api)
	recorder := events.NewFakeRecorder(10)
	bench.Events = recorder
	for range 4 {
		if _, err := bench.Reconcile(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		bench.Clock.(*clocktesting.FakeClock).Step(longWaitTime)
	}
	close(recorder.Events)
	var told []string
	for one := range recorder.Events {
		told = append(told, one)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "Warning FailedMount volume data: waiting for claim") {
		t.Errorf("its events are %q", told)
	}
}
