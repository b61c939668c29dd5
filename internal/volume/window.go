package volume

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// undeletableUntil begins status.reason of a volume in its undelete window. The deadline
// follows: kubectl get pv has both in the column REASON.
const undeletableUntil = "UndeletableUntil"

// UndeletableReason returns status.reason of a volume whose data is kept until a deadline, as
// UndeletableUntil reads it. It has whole seconds.
func UndeletableReason(deadline time.Time) string {
	return undeletableUntil + deadline.UTC().Format(time.RFC3339)
}

// InUndeleteWindow reports whether status.reason of a volume shows an undelete window.
func InUndeleteWindow(pv *corev1.PersistentVolume) bool {
	return strings.HasPrefix(pv.Status.Reason, undeletableUntil)
}

// UndeletableUntil returns when the data of a volume is deleted, as the manager wrote it into
// status.reason, and whether the volume is in its undelete window.
func UndeletableUntil(pv *corev1.PersistentVolume) (time.Time, bool) {
	written, in := strings.CutPrefix(pv.Status.Reason, undeletableUntil)
	if !in {
		return time.Time{}, false
	}
	until, err := time.Parse(time.RFC3339, written)
	return until, err == nil
}
