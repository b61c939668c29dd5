package storageclass

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAClaimWakesOnlyAClassThatIsBeingDeleted(t *testing.T) {
	kept := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{stowagev1alpha1.ProvisioningFinalizer}}}
	leaving := kept.DeepCopy()
	leaving.Name, leaving.DeletionTimestamp = "leaving", new(metav1.Now())
	r := &Reconciler{client: fake.NewClientBuilder().WithObjects(kept, leaving).Build()}
	for class, wakes := range map[string]int{"leaving": 1, "kept": 0, "gone": 0, "": 0} {
		if woken := r.classOfClaim(t.Context(), Claim(InClass(class))); len(woken) != wakes || wakes == 1 && woken[0].Name != class {
			t.Errorf("a claim of class %q wakes %v", class, woken)
		}
	}
}
