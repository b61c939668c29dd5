// Package usage says how much of a volume is used: in its NodeVolume's status, when it is
// news, and in metrics. Directories without a quota are counted file by file, one of each
// folder at a time and apart from the passes of the reconciler, so that a disk that hangs
// holds up no other.
package usage

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// usageInterval is how often a use is told of that moves little.
	usageInterval = 10 * time.Minute
	// usageStep is the part of the capacity by which it moves to be told of at once.
	usageStep = 20
)

// Usage is how much of a volume is used.
type Usage struct {
	// Bytes are used of Size, which may be more or less than the capacity: a file
	// system has some for itself.
	Bytes, Size int64
	// Inodes is how many files there are; nil where nobody counts them.
	Inodes *int64
}

// Set says in memory how much of a volume is used, if that is news: what is
// written for every change is a burden on the API server.
func Set(volume *stowagev1alpha1.NodeVolume, usage Usage, now time.Time) {
	if !isNews(&volume.Status, usage, now) {
		return
	}
	volume.Status.Used = resource.NewQuantity(usage.Bytes, resource.BinarySI)
	volume.Status.UsedInodes = usage.Inodes
	volume.Status.UsedTime = new(metav1.NewTime(now))
}

func isNews(told *stowagev1alpha1.NodeVolumeStatus, usage Usage, now time.Time) bool {
	if told.Used == nil || told.UsedTime == nil {
		return true
	}
	moved := usage.Bytes - told.Used.Value()
	if moved < 0 {
		moved = -moved
	}
	same := moved == 0 && (usage.Inodes == nil) == (told.UsedInodes == nil) &&
		(usage.Inodes == nil || *usage.Inodes == *told.UsedInodes)
	due := now.Sub(told.UsedTime.Time) >= usageInterval
	return !same && due || told.Capacity != nil && moved > told.Capacity.Value()/usageStep
}
