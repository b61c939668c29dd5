package nodemanager

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
)

func TestAPodThatWaitedLongForItsClaimHasAnEventOfThatAndOfTheEnd(t *testing.T) {
	pod := nodetest.PodWith(nodetest.ClaimVolume("data", false))
	pod.Spec.NodeName = "n1"
	api := clientWith(interceptor.Funcs{}, pod)
	claim, volume := nodetest.Bound()
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: t.TempDir()}}
	mounter := &mounttest.Fake{}
	bench := newBench(t, api, api, withTypes(local.New(mounter)), func(options *Options) { options.Mounter = mounter })
	recorder := bench.Events.(*events.FakeRecorder)
	for range 4 {
		if _, err := bench.Reconcile(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		bench.Clock.(*clocktesting.FakeClock).Step(podstatus.LongWaitTime)
	}
	for _, object := range []client.Object{claim, volume} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for ready := false; !ready; ready = podclaims.HasVolumes(pod) {
		if _, err := bench.Reconcile(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
	}
	close(recorder.Events)
	var recorded []string
	for one := range recorder.Events {
		recorded = append(recorded, one)
	}
	if len(recorded) != 2 || !strings.HasPrefix(recorded[0], "Warning FailedMount volume data: waiting for claim") ||
		recorded[1] != "Normal SuccessfulMountVolume all volumes are mounted (1)" {
		t.Errorf("its events are %q", recorded)
	}
}
