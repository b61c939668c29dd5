package provisioned

import (
	"cmp"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Restore is the record of the snapshot, or the volume, that a claim's volume is made from. It is in the
// status, which users can't write: they could name the snapshot of another tenant.
type Restore struct {
	Attempt int `json:"attempt"`
	// Namespace of the source; empty for that of the claim.
	Namespace string `json:"namespace,omitempty"`
	// Snapshot is the handle at the backend.
	Snapshot string `json:"snapshot,omitempty"`
	// Given: an administrator's content gives the snapshot to the namespace.
	Given bool `json:"given,omitempty"`
	// AnyMode: it lets the volume have another volumeMode.
	AnyMode bool `json:"anyMode,omitempty"`
	// Volume is the handle of the volume that is copied, and Claim the UID of its claim.
	Volume string    `json:"volume,omitempty"`
	Claim  types.UID `json:"claim,omitempty"`
}

// RestoreOf returns the record of a claim's current attempt; an empty one if there is none.
func RestoreOf(claim *corev1.PersistentVolumeClaim) Restore {
	restore := Restore{}
	err := json.Unmarshal([]byte(recordIn(claim, stowagev1alpha1.RestoreCondition)), &restore)
	if err != nil || restore.Attempt != AttemptOf(claim) {
		return Restore{}
	}
	return restore
}

// SourceOf returns what a claim's volume is made from, as far as it is recorded. Nil: it is empty.
func SourceOf(claim *corev1.PersistentVolumeClaim) *backend.Source {
	named, recorded := DataSource(claim), RestoreOf(claim)
	switch {
	case named == nil:
		return nil
	case recorded.Volume == "":
		return &backend.Source{Snapshot: recorded.Snapshot, Given: recorded.Given, AnyMode: recorded.AnyMode, Namespace: recorded.Namespace}
	}
	return &backend.Source{
		ID: recorded.Volume, Namespace: recorded.Namespace,
		Claim: stowagev1alpha1.ClaimReference{Namespace: cmp.Or(recorded.Namespace, claim.Namespace), Name: named.Name, UID: recorded.Claim},
	}
}

// Text returns the record for the status, and whether it fits there.
func (r Restore) Text() (text string, fits bool, err error) { return recordText(r) }

// IsUncalledCopy reports whether a claim's volume is to be made from something, and no CSI driver was
// called for the current attempt: the record comes before the call. Earlier versions recorded snapshots alone.
func IsUncalledCopy(claim *corev1.PersistentVolumeClaim, operation Intent) bool {
	named := DataSource(claim)
	return named != nil && SourceOf(claim).IsUnknown() && (IsSnapshot(named) || operation.Records)
}
