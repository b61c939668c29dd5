package nodemanager

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
)

func TestAPodThatWaitsLongForItsClaimHasAnEvent(t *testing.T) {
	pod := nodetest.PodWith(nodetest.ClaimVolume("data", false))
	pod.Spec.NodeName = "n1"
	api := clientWith(interceptor.Funcs{}, pod)
	bench := newBench(t, api, api)
	recorder := bench.Events.(*events.FakeRecorder)
	for range 4 {
		if _, err := bench.Reconcile(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		bench.Clock.(*clocktesting.FakeClock).Step(podstatus.LongWaitTime)
	}
	close(recorder.Events)
	var recorded []string
	for one := range recorder.Events {
		recorded = append(recorded, one)
	}
	if len(recorded) != 1 || !strings.HasPrefix(recorded[0], "Warning FailedMount volume data: waiting for claim") {
		t.Errorf("its events are %q", recorded)
	}
}
