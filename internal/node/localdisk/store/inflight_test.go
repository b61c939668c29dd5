package store

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestACopyThatNobodyWantsAnyMoreIsCutShortAndLeavesNothing(t *testing.T) {
	needsExt4(t)
	base := realDir(t)
	fillSources(t, base)
	for kind, source := range sources(base) {
		var makings InFlight
		volume := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{UID: "one"}}
		making, end := makings.Begin(t.Context(), volume.UID)
		makings.CancelIfDeleted(volume)
		if making.Err() != nil {
			t.Fatalf("%s: it was cut short though it is wanted", kind)
		}

		// It is deleted when it has its room, before anything is copied.
		volume.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		store := newImageStore(base)
		err := store.Make(making, copyNamed(source, "pvc-1"), func() ([]layout.Volume, error) {
			makings.CancelIfDeleted(volume)
			return nil, nil
		})
		end()

		if !IsCancelled(making) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", kind, err)
		}
		mustHoldOnlySources(t, source.Path)
		if err := store.Remove(t.Context(), source); err != nil {
			t.Errorf("%s: its source can't be removed: %v", kind, err)
		}
		makings.CancelIfDeleted(volume) // and nothing is there to be cut short any more
	}
}
