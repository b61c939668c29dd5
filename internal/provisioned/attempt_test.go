package provisioned_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAVolumeWasMadeForAClaim(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	created := func(second int64) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.CreationTimestamp = at(second) }
	}
	madeBy := func(driver string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volume.AnnDynamicallyProvisioned, driver)
		}
	}
	claim := Claim(ClaimUID("a"), func(claim *corev1.PersistentVolumeClaim) { claim.CreationTimestamp = at(100) })

	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		want   bool
	}{
		"named for it":                     {Volume("pvc-a", madeBy("example.com"), created(101)), true},
		"named otherwise":                  {Volume("disk-7", madeBy("example.com"), created(101)), true},
		"in the same second":               {Volume("disk-7", madeBy("example.com"), created(100)), true},
		"older than the claim":             {Volume("disk-7", madeBy("example.com"), created(99)), false},
		"by hand":                          {Volume("pvc-a", created(101)), false},
		"by Stowage, for another claim":    {Volume("pvc-b", madeBy(stowagev1alpha1.NFSDriver), created(101)), false},
		"by Stowage, for an earlier round": {Volume("pvc-a-2", madeBy(stowagev1alpha1.NFSDriver), created(101)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := provisioned.MadeFor(test.volume, claim); got != test.want {
				t.Errorf("it reports %t", got)
			}
		})
	}
}
