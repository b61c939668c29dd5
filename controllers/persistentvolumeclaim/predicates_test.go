package persistentvolumeclaim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestAClassWakesItsClaimsUnlessOnlyItsFinalizersChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*storagev1.StorageClass)
		wakes  bool
	}{
		"it is held while claims are provisioned": {change: func(class *storagev1.StorageClass) { class.Finalizers = []string{"stowage.dev/provisioning"} }},
		"it becomes the default": {wakes: true, change: func(class *storagev1.StorageClass) {
			class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}},
		"it allows another zone": {wakes: true, change: func(class *storagev1.StorageClass) { class.AllowedTopologies = nil }},
		"it is being deleted":    {wakes: true, change: func(class *storagev1.StorageClass) { class.DeletionTimestamp = &metav1.Time{} }},
	} {
		t.Run(name, func(t *testing.T) {
			before := &storagev1.StorageClass{Provisioner: "csi.example.com"}
			before.ResourceVersion = "1"
			before.AllowedTopologies = append(before.AllowedTopologies, corev1.TopologySelectorTerm{})
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			tc.change(after)
			if wakes := newClasses.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); wakes != tc.wakes {
				t.Errorf("it wakes them: %v", wakes)
			}
		})
	}
}
