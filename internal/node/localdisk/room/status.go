package room

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const (
	// mebibyte is what the status is rounded to, to be read by people.
	mebibyte = 1 << 20
	// largeChange is the part of a disk by which usage changes to be reported at once. Smaller
	// changes by volumes wait for SmallChanges, and smaller changes by other files for more.
	largeChange = 100
	// SmallChanges is the time between two reports of small changes.
	SmallChanges = 10 * time.Second
)

// Report sets the numbers of a NodeDisk's status, in memory, if they changed much, or if small
// changes are due.
func (r Room) Report(status *stowagev1alpha1.NodeDiskStatus, isDue bool) {
	fresh := status.DeepCopy()
	fresh.Total, fresh.Used = inMebibytes(r.total), inMebibytes(r.used)
	fresh.Given, fresh.Available = inMebibytes(r.given), inMebibytes(r.left())
	switch {
	case status.Total == nil || status.Used == nil || status.Given == nil || status.Available == nil,
		status.Total.Cmp(*fresh.Total) != 0,
		status.Available.IsZero() != fresh.Available.IsZero(),
		r.differ(status.Available, fresh.Available), r.differ(status.Used, fresh.Used), r.differ(status.Given, fresh.Given),
		isDue && !equality.Semantic.DeepEqual(status.Given, fresh.Given):
		*status = *fresh
	}
}

// differ reports whether two numbers of a disk are a large change apart.
func (r Room) differ(a, b *resource.Quantity) bool {
	apart := a.Value() - b.Value()
	return max(apart, -apart) >= max(r.total/largeChange, mebibyte)
}

// inMebibytes rounds bytes down to whole MiB.
func inMebibytes(bytes int64) *resource.Quantity {
	return resource.NewQuantity(bytes/mebibyte*mebibyte, resource.BinarySI)
}

// Fullness returns the reason and the message of condition HasRoom. The message stays the same
// while the disk is used.
func (r Room) Fullness() (reason, message string) {
	switch {
	case r.left() >= mebibyte:
		return stowagev1alpha1.ReasonReady, "the disk has room for volumes"
	case r.leftBytes() >= mebibyte:
		return stowagev1alpha1.ReasonFull, "hardly any inodes are left on the disk: remove files, delete claims, or add a node or a disk"
	default:
		return stowagev1alpha1.ReasonFull, fmt.Sprintf("nothing is left of %s (%s reserved): delete claims, remove other files, or add a node or a disk",
			layout.Quantity(r.total), layout.Quantity(r.reserved))
	}
}
