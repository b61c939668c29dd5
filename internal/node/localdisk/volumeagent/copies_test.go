package volumeagent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestVolumesThatAreRemovedAtTheSameTimeShareALookForTheirCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := &heldLists{let: make(chan struct{}), copies: []stowagev1alpha1.NodeVolume{{
			ObjectMeta: metav1.ObjectMeta{Name: "copy"}, Spec: stowagev1alpha1.NodeVolumeSpec{Source: "copied"},
		}}}
		sources := newCopySources("node-1", "", live)
		var looks sync.WaitGroup
		for name, want := range map[string]error{"copied": layout.ErrInUse, "one": nil, "two": nil, "three": nil} {
			looks.Go(func() {
				if err := sources.awaitCopies(t.Context(), made(name)); !errors.Is(err, want) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		synctest.Wait()
		if begun := live.begun.Load(); begun != 1 {
			t.Errorf("%d lists were in flight", begun)
		}
		close(live.let)
		looks.Wait()
		if begun := live.begun.Load(); begun > 2 {
			t.Errorf("there were %d lists: a second is for all that came during the first", begun)
		}
	})
}

func made(name string) *stowagev1alpha1.NodeVolume {
	volume := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	setCondition(volume, stowagev1alpha1.ProvisionedCondition, stowagev1alpha1.ReasonReady, "it is there")
	return volume
}

// heldLists has copies, but a list waits until it is let go on.
type heldLists struct {
	client.Reader
	copies []stowagev1alpha1.NodeVolume
	let    chan struct{}
	begun  atomic.Int32
}

func (h *heldLists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	h.begun.Add(1)
	<-h.let
	list.(*stowagev1alpha1.NodeVolumeList).Items = h.copies
	return nil
}
