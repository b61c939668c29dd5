// Package usage reports how much of a volume is used: in the status of its NodeVolume, if that
// changed much, and in metrics. A walker counts directories without a quota file by file, one of
// each folder at a time. It runs beside the reconciler: a disk that hangs delays no other.
package usage

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// usageInterval is the time between two reports of small changes.
	usageInterval = 10 * time.Minute
	// usageStep is the part of the capacity by which usage changes to be reported at once.
	usageStep = 20
)

// Usage is how much of a volume is used.
type Usage struct {
	// Bytes are used of Size. A file system needs some of the capacity for itself, so the two may
	// differ.
	Bytes, Size int64
	// Inodes is how many files there are; nil where they aren't counted.
	Inodes *int64
}

// Set sets the usage in memory, if it changed much or long ago: a write for each change would load
// the API server.
func Set(volume *stowagev1alpha1.NodeVolume, usage Usage, now time.Time) {
	if !needsReport(&volume.Status, usage, now) {
		return
	}
	volume.Status.Used = resource.NewQuantity(usage.Bytes, resource.BinarySI)
	volume.Status.UsedInodes = usage.Inodes
	volume.Status.UsedTime = new(metav1.NewTime(now))
}

func needsReport(reported *stowagev1alpha1.NodeVolumeStatus, usage Usage, now time.Time) bool {
	if reported.Used == nil || reported.UsedTime == nil {
		return true
	}
	moved := usage.Bytes - reported.Used.Value()
	moved = max(moved, -moved)
	same := moved == 0 && (usage.Inodes == nil) == (reported.UsedInodes == nil) &&
		(usage.Inodes == nil || *usage.Inodes == *reported.UsedInodes)
	due := now.Sub(reported.UsedTime.Time) >= usageInterval
	return !same && due || reported.Capacity != nil && moved > reported.Capacity.Value()/usageStep
}
