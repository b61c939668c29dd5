package emptydir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

// watched is a volume whose size is looked at.
type watched struct {
	plugin emptydir.Plugin
	spec   volumes.Spec
	dir    string
	now    time.Time
	woken  []types.UID
}

func newWatched(t *testing.T, limit string) *watched {
	t.Helper()
	w := &watched{plugin: emptydir.New(&mounttest.Fake{}), spec: specOf("", limit), dir: newDir(t), now: time.Now()}
	w.spec.Pod = &corev1.Pod{}
	w.spec.Pod.UID = "the-pod"
	if err := w.plugin.Publish(t.Context(), w.spec, w.dir); err != nil {
		t.Fatal(err)
	}
	return w
}

// later lets some time pass, after which the volume is measured if that is due, and says
// how the volume is.
func (w *watched) later(t *testing.T, passed time.Duration) error {
	t.Helper()
	w.now = w.now.Add(passed)
	w.plugin.MeasureDue(t.Context(), w.now, func(pod types.UID) { w.woken = append(w.woken, pod) })
	there, err := w.plugin.IsPublished(nil, w.spec, w.dir)
	if !there {
		t.Error("it isn't published any more")
	}
	return err
}

func (w *watched) write(t *testing.T, bytes int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "file"), make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

//proves:emptyDir/sizeLimit
func TestAPodIsWokenOnceWhenItsVolumeIsOverItsLimitAndOnceWhenItIsNot(t *testing.T) {
	mounttest.NeedsRoot(t) // a published directory is root's
	w := newWatched(t, "1Mi")
	if err := w.later(t, 0); err != nil {
		t.Fatal(err)
	}
	w.write(t, 2*mebibyte)
	for range 3 {
		err := w.later(t, time.Hour)
		if !errors.Is(err, volumes.ErrOverLimit) || !strings.Contains(err.Error(), "more than its sizeLimit, which is 1Mi") {
			t.Fatalf("got %v", err)
		}
	}
	if len(w.woken) != 1 || w.woken[0] != "the-pod" {
		t.Errorf("woken were %v", w.woken)
	}
	w.write(t, 10)
	if err := w.later(t, time.Hour); err != nil || len(w.woken) != 2 {
		t.Errorf("got %v, woken were %v", err, w.woken)
	}
}

func TestAVolumeIsMeasuredNowAndThenOnly(t *testing.T) {
	mounttest.NeedsRoot(t) // a published directory is root's
	w := newWatched(t, "1Mi")
	for range 2 {
		if err := w.later(t, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, 2*mebibyte)
	if err := w.later(t, time.Second); err != nil {
		t.Errorf("it was measured again at once: %v", err)
	}
}

func TestAVolumeThatIsGoneIsNotMeasured(t *testing.T) {
	mounttest.NeedsRoot(t) // a published directory is root's
	w := newWatched(t, "1Mi")
	w.write(t, 2*mebibyte)
	if err := w.later(t, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.plugin.Unpublish(t.Context(), w.dir); err != nil {
		t.Fatal(err)
	}
	w.plugin.MeasureDue(t.Context(), w.now.Add(time.Hour), func(types.UID) { t.Error("a pod was woken") })
}

func TestAVolumeWithoutALimitIsNotMeasured(t *testing.T) {
	mounttest.NeedsRoot(t) // a published directory is root's
	w := newWatched(t, "")
	w.write(t, 2*mebibyte)
	for range 2 {
		if err := w.later(t, time.Hour); err != nil || len(w.woken) > 0 {
			t.Errorf("got %v, woken were %v", err, w.woken)
		}
	}
}
