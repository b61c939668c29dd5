package provisioning

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// settingsOf identifies what a StorageBackend adds to each CreateVolume of a CSI driver. A repeat with
// other parameters may not find what the first call made. Other kinds find it by its name.
func settingsOf(object *stowagev1alpha1.StorageBackend) string {
	if object.Spec.CSI == nil {
		return ""
	}
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(object.Spec.CSI.Parameters)) {
		fmt.Fprintf(sum, "%q=%q,", key, object.Spec.CSI.Parameters[key])
	}
	fmt.Fprintf(sum, "%q", object.Spec.CSI.FSType)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// refusals are the calls that CSI drivers refused for good, by the ids of their volumes: with the settings
// that they had, nothing is there. A restart forgets them.
type refusals struct{ settings *lru.Cache }

// maxRefusals bounds the calls that are remembered.
const maxRefusals = 10_000

func newRefusals() refusals { return refusals{lru.New(maxRefusals)} }

// begin forgets what became of the call before this one.
func (r refusals) begin(claim *corev1.PersistentVolumeClaim) {
	r.settings.Remove(provisioned.VolumeID(claim))
}

// end remembers an outcome that is final.
func (r refusals) end(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend, outcome error) {
	if backend.IsRefusal(outcome) {
		r.settings.Add(provisioned.VolumeID(claim), settingsOf(object))
	}
}

// check returns an error where a pending call can't be repeated as it was. One that was refused for good
// needs no repeat.
func (r refusals) check(claim *corev1.PersistentVolumeClaim, operation provisioned.Intent, object *stowagev1alpha1.StorageBackend) error {
	refused, _ := r.settings.Get(provisioned.VolumeID(claim))
	if operation.Settings == "" || operation.Settings == settingsOf(object) || operation.Settings == refused {
		return nil
	}
	return backend.Invalid.Errorf("spec.csi.parameters or spec.csi.fsType of StorageBackend %s were changed while a call to make this volume is unfinished, "+
		"and a call with others may not find what it made: set them back until the claim is done, or the driver has refused the call; then they can change", object.Name)
}
