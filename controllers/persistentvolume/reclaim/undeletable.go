package reclaim

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// UndeletableUntil returns when the data of a volume is deleted, and whether the volume is in its
// undelete window.
func UndeletableUntil(pv *corev1.PersistentVolume) (time.Time, bool) {
	written, in := strings.CutPrefix(pv.Status.Reason, "UndeletableUntil")
	if !in {
		return time.Time{}, false
	}
	until, err := time.Parse(time.RFC3339, written)
	return until, err == nil
}
