package provisioned

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Restore is the record of the snapshot that a claim's volume is restored from. It is in the status,
// which users can't write: they could name the snapshot of another tenant.
type Restore struct {
	Attempt int `json:"attempt"`
	// Snapshot is the handle at the backend.
	Snapshot string `json:"snapshot"`
}

// SnapshotOf returns the snapshot in the record of a claim's current attempt; "" if there is none.
func SnapshotOf(claim *corev1.PersistentVolumeClaim) string {
	restore := Restore{}
	err := json.Unmarshal([]byte(recordIn(claim, stowagev1alpha1.RestoreCondition)), &restore)
	if err != nil || restore.Attempt != AttemptOf(claim) {
		return ""
	}
	return restore.Snapshot
}

// Text returns the record for the status, and whether it fits there.
func (r Restore) Text() (text string, fits bool, err error) { return recordText(r) }

// IsUncalledRestore reports whether a claim is to be restored, and no backend was called for the current
// attempt: the record comes before the call.
func IsUncalledRestore(claim *corev1.PersistentVolumeClaim) bool {
	source := DataSource(claim)
	return source != nil && IsSnapshot(source) && SnapshotOf(claim) == ""
}
