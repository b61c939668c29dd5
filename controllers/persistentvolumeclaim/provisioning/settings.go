package provisioning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

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
	// Texts can always be written, and the keys of a map are written in order.
	text, _ := json.Marshal([]any{object.Spec.CSI.Parameters, object.Spec.CSI.FSType})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// checkSettings returns an error where a pending call can't be repeated as it was.
func checkSettings(operation provisioned.Intent, object *stowagev1alpha1.StorageBackend) error {
	if operation.Settings == "" || operation.Settings == settingsOf(object) {
		return nil
	}
	return backend.Invalid.Errorf("spec.csi.parameters or spec.csi.fsType of StorageBackend %s were changed while a call to make this volume is unfinished, "+
		"and a call with others may not find what it made: set them back until the claim is done", object.Name)
}

// forgetSettings lets a call that was refused for good be made with other settings: with the earlier ones
// nothing is there.
func (r *Provisioner) forgetSettings(ctx context.Context, claim *corev1.PersistentVolumeClaim, outcome error) error {
	operation, err := provisioned.IntentOf(claim)
	if err != nil || operation.Settings == "" || backend.KindOf(outcome) != backend.Invalid {
		return nil //nolint:nilerr // an annotation that can't be read has nothing to forget
	}
	operation.Settings = ""
	return r.writeOperation(ctx, claim, operation)
}
