package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

// Percentages at which something becomes nearly full, and at which it no longer is. Two limits
// keep usage near one of them from changing the condition again and again.
const (
	nearlyFull   = 95
	notFullAgain = 90
)

// Trouble is a problem of a volume. Its message has no numbers that change: each new message is a
// write, and an event.
type Trouble struct{ reason, message string }

// Report is what an inspection found.
type Report struct {
	// Usage is nil where it isn't known.
	Usage *usage.Usage
	// Enforced: the capacity is a limit.
	Enforced bool
	// mostInodes is the limit of inodes; 0 without one.
	mostInodes int64
	// Uncounted: it has more files than are counted.
	Uncounted bool
	Troubles  []Trouble
}

func (r *Report) add(reason, format string, arguments ...any) {
	r.Troubles = append(r.Troubles, Trouble{reason, fmt.Sprintf(format, arguments...)})
}

// severity is the order of reasons, the most severe first.
var severity = []string{
	stowagev1alpha1.ReasonLost, stowagev1alpha1.ReasonImageMissing, stowagev1alpha1.ReasonIOError,
	stowagev1alpha1.ReasonFileSystemReadOnly, stowagev1alpha1.ReasonDiskNearlyFull, stowagev1alpha1.ReasonVolumeNearlyFull,
}

// Verdict returns the reason and the message of condition Healthy for all troubles.
func Verdict(troubles []Trouble) (reason, message string) {
	if len(troubles) == 0 {
		return stowagev1alpha1.ReasonReady, "nothing is known to be wrong with the volume"
	}
	sorted := slices.Clone(troubles)
	slices.SortStableFunc(sorted, func(a, b Trouble) int {
		return slices.Index(severity, a.reason) - slices.Index(severity, b.reason)
	})
	var messages []string
	for _, one := range sorted {
		messages = append(messages, one.message)
	}
	return sorted[0].reason, strings.Join(messages, "; ")
}

// isNearlyFull reports whether something is nearly full that was, or was not, so before.
func isNearlyFull(used, size int64, was bool) bool {
	from := int64(nearlyFull)
	if was {
		from = notFullAgain
	}
	// Divided first: the product would overflow on a large disk.
	return size > 0 && used >= size/100*from+size%100*from/100
}

// checkInodes checks the free inodes on the disk of a directory, which needs one for each file.
// btrfs has no limit of them.
func (r *Report) checkInodes(stat unix.Statfs_t, volume layout.Volume, had string) {
	used, all := int64(stat.Files-stat.Ffree), int64(stat.Files)
	if volume.Image == nil && isNearlyFull(used, all, had == stowagev1alpha1.ReasonDiskNearlyFull) {
		r.add(stowagev1alpha1.ReasonDiskNearlyFull,
			"the disk at %s has hardly any inodes left, and each file of the volume needs one: remove files, or volumes", volume.Path)
	}
}

// CheckLimits adds the troubles of a volume that has used nearly all that it may have.
func (r *Report) CheckLimits(had string) {
	wasFull := had == stowagev1alpha1.ReasonVolumeNearlyFull
	if isNearlyFull(r.Usage.Bytes, r.Usage.Size, wasFull) {
		r.add(stowagev1alpha1.ReasonVolumeNearlyFull, "the volume is nearly full: ask for more in the claim, or remove files")
	}
	if r.Usage.Inodes != nil && isNearlyFull(*r.Usage.Inodes, r.mostInodes, wasFull) {
		r.add(stowagev1alpha1.ReasonVolumeNearlyFull, "the volume has nearly as many files as it may have: ask for more in the claim, or remove files")
	}
}

// isBroken reports whether an error comes from a damaged disk or file system.
func isBroken(err error) bool {
	for _, errno := range []error{unix.EIO, unix.EUCLEAN, unix.ESHUTDOWN, unix.ENODATA, unix.EREMOTEIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// TroubleOf returns the trouble that an error is a sign of; nil where the volume may be healthy.
func TroubleOf(err error) []Trouble {
	switch {
	case errors.Is(err, layout.ErrImageMissing):
		return []Trouble{{stowagev1alpha1.ReasonImageMissing, err.Error()}}
	case errors.Is(err, layout.ErrLost):
		return []Trouble{{stowagev1alpha1.ReasonLost, err.Error()}}
	case isBroken(err):
		return []Trouble{{stowagev1alpha1.ReasonIOError, fmt.Sprintf("the disk gives errors: look at the node's kernel log: %v", err)}}
	default:
		return nil
	}
}
