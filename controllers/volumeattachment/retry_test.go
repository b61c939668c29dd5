package volumeattachment

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/program"
)

func TestARefusedAttachIsRetriedSoonAndThenEverMoreSlowly(t *testing.T) {
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1"}}
	for kind, last := range map[backend.ErrorKind]time.Duration{backend.Invalid: 5 * time.Minute, backend.Conflict: 30 * time.Second} {
		clock := clocktesting.NewFakeClock(time.Now())
		r := &reporter{clock: clock}
		next := func() time.Duration {
			t.Helper()
			result, err := r.retryOf(attachment, kind.Errorf("it is attached elsewhere"), nil)
			if err != nil {
				t.Fatal(err)
			}
			clock.Step(result.RequeueAfter)
			return result.RequeueAfter
		}
		for i, want := range []time.Duration{time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
			if got := next(); got != want {
				t.Errorf("%s: retry %d comes after %s", kind, i, got)
			}
		}
		for range 10 {
			next()
		}
		if got := next(); got != last {
			t.Errorf("%s: the last comes after %s", kind, got)
		}
		for after, ends := range map[string]func(){
			"it was attached":    func() { r.forget(client.ObjectKeyFromObject(attachment)) },
			"the cloud was away": func() { _, _ = r.retryOf(attachment, backend.Unavailable.Errorf("away"), nil) },
		} {
			next()
			ends()
			if got := next(); got != time.Second {
				t.Errorf("%s: the first after %s comes after %s", kind, after, got)
			}
			clock.Step(time.Hour)
		}
	}
}

func TestARefusedAttachIsRetriedSoonOnceAnotherAttachmentOfItsVolumeIsGone(t *testing.T) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.GCEDriver, VolumeHandle: "v"}
	waits := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "waits"}}
	waits.Spec.Attacher, waits.Spec.Source.PersistentVolumeName = stowagev1alpha1.GCEDriver, &volume.Name
	gone := waits.DeepCopy()
	gone.Name = "gone"
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := indexed{fake.NewClientBuilder().WithScheme(scheme).WithObjects(volume, waits)}
	if err := index.Add(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	api := cluster.Build()
	r := &reporter{}
	began := time.Now()
	r.refused.Note("waits", began)
	w := watches{api, drivers.New(api), &r.refused}
	if requests := w.othersOfVolume(t.Context(), gone); len(requests) != 1 || !r.refused.Last("waits").IsZero() {
		t.Errorf("it wakes %v, which wait since %s", requests, r.refused.Last("waits"))
	}
}

// indexed is a cluster in memory with the field indexes of the manager's cache.
type indexed struct{ *fake.ClientBuilder }

func (c indexed) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	c.WithIndex(object, field, values)
	return nil
}
