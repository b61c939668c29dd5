package spec

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestNamesAreThoseThatStowageMakesForTheClaim(t *testing.T) {
	const uid = "0b7e9a52-0000-4000-8000-000000000001"
	tests := map[string]bool{
		"pvc-" + uid:         true,
		"pvc-" + uid + "-2":  true,
		"pvc-" + uid + "-12": true,
		"pvc-" + uid + "-":   false,
		"pvc-" + uid + "-x":  false,
		"pvc-" + uid + "2":   false,
		"pvc-" + uid + "/..": false,
		"pvc-":               false,
		"pvc-other":          false,
		"fast":               false,
		".":                  false,
		"..":                 false,
		"":                   false,
		uid:                  false,
	}
	for name, valid := range tests {
		volume := &stowagev1alpha1.NodeVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       stowagev1alpha1.NodeVolumeSpec{ClaimRef: stowagev1alpha1.ClaimReference{UID: types.UID(uid)}},
		}
		if err := checkName(volume); (err == nil) != valid {
			t.Errorf("%q: got %v", name, err)
		}
	}
	unowned := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-"}}
	if checkName(unowned) == nil {
		t.Error("a volume of no claim has a valid name")
	}
}

func TestNamesOfSnapshotsAreThoseThatStowageMakesForTheVolumeSnapshot(t *testing.T) {
	for name, valid := range map[string]bool{"snapshot-a-1": true, "snapshot-a-1-2": false, "snapshot-a": false, "pvc-claim": false, "a-1": false} {
		volume := &stowagev1alpha1.NodeVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       stowagev1alpha1.NodeVolumeSpec{SnapshotUID: "a-1", ClaimRef: stowagev1alpha1.ClaimReference{UID: "claim"}},
		}
		if err := checkName(volume); (err == nil) != valid {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestABlockDeviceNeedsAnImage(t *testing.T) {
	spec := stowagev1alpha1.NodeVolumeSpec{Layout: stowagev1alpha1.LayoutDirectory, VolumeMode: corev1.PersistentVolumeBlock}
	err := CheckSpec(&stowagev1alpha1.NodeVolume{Spec: spec})
	if !errors.Is(err, layout.ErrNotSupported) || !strings.Contains(err.Error(), "layout Image") {
		t.Errorf("got %v", err)
	}
}
