package persistentvolume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/opener"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAChangeOfAClaimWakesItsVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"when it names another volume": {AskingFor("w"), true},
		"when its binding completes": {func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{volume.AnnBindCompleted: "yes"}
		}, true},
		"when it is being deleted":        {func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = new(metav1.Now()) }, true},
		"when it was recreated":           {ClaimUID("2"), true},
		"but not in a resync":             {func(claim *corev1.PersistentVolumeClaim) { claim.ResourceVersion = "1" }, false},
		"but not when its status changes": {func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimBound }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := Claim(AskingFor("v"), ClaimUID("1"))
			before.ResourceVersion = "1"
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			test.change(after)
			if got := newTies.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("it wakes them: %t", got)
			}
		})
	}
}

func TestANodeVolumeWakesItsVolumeOnceThereIsOne(t *testing.T) {
	r := &Reconciler{client: fake.NewClientBuilder().WithObjects(Volume("made")).Build(), storage: &opener.Opener{}}
	for name, wakes := range map[string]bool{"made": true, "being-made": false} {
		woken := r.volumeOfNodeVolume(t.Context(), &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if len(woken) == 1 != wakes || wakes && woken[0].Name != name {
			t.Errorf("NodeVolume %s wakes %v", name, woken)
		}
	}
}
