package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Parts of a hundred from which on something is nearly full, and below which it isn't
// any more: one that stays about there is told of once.
const (
	nearlyFull   = 95
	notFullAgain = 90
)

// Trouble is something that is wrong with a volume. Its message has no numbers that
// change: each other message is written and told of.
type Trouble struct{ reason, message string }

// gravity is the order of reasons, the gravest first.
var gravity = []string{
	stowagev1alpha1.ReasonLost, stowagev1alpha1.ReasonImageMissing, stowagev1alpha1.ReasonIOError,
	stowagev1alpha1.ReasonFileSystemReadOnly, stowagev1alpha1.ReasonDiskNearlyFull, stowagev1alpha1.ReasonVolumeNearlyFull,
}

// Verdict is the reason and the message of the condition that tells of all troubles.
func Verdict(troubles []Trouble) (reason, message string) {
	if len(troubles) == 0 {
		return stowagev1alpha1.ReasonReady, "nothing is known to be wrong with the volume"
	}
	sorted := slices.Clone(troubles)
	slices.SortStableFunc(sorted, func(a, b Trouble) int {
		return slices.Index(gravity, a.reason) - slices.Index(gravity, b.reason)
	})
	var messages []string
	for _, one := range sorted {
		messages = append(messages, one.message)
	}
	return sorted[0].reason, strings.Join(messages, "; ")
}

// isNearlyFull says whether something is nearly full that was so, or wasn't, before.
func isNearlyFull(used, size int64, was bool) bool {
	from := int64(nearlyFull)
	if was {
		from = notFullAgain
	}
	// Divided first: the product of a large disk would be beyond all numbers.
	return size > 0 && used >= size/100*from+size%100*from/100
}

// checkInodes looks how many inodes are left on the disk of a volume that needs one for each
// file. btrfs has no number of them.
func (s *Report) checkInodes(stat unix.Statfs_t, volume layout.Volume, had string) {
	used, all := int64(stat.Files-stat.Ffree), int64(stat.Files)
	if volume.Image == nil && isNearlyFull(used, all, had == stowagev1alpha1.ReasonDiskNearlyFull) {
		s.add(stowagev1alpha1.ReasonDiskNearlyFull,
			"the disk at %s has hardly any inodes left, and each file of the volume needs one: remove files, or volumes", volume.Path)
	}
}

// CheckLimits says whether a volume has nearly all that it may have.
func (s *Report) CheckLimits(had string) {
	wasFull := had == stowagev1alpha1.ReasonVolumeNearlyFull
	if isNearlyFull(s.Usage.Bytes, s.Usage.Size, wasFull) {
		s.add(stowagev1alpha1.ReasonVolumeNearlyFull, "the volume is nearly full: ask for more in the claim, or remove files")
	}
	if s.Usage.Inodes != nil && isNearlyFull(*s.Usage.Inodes, s.mostInodes, wasFull) {
		s.add(stowagev1alpha1.ReasonVolumeNearlyFull, "the volume has nearly as many files as it may have: ask for more in the claim, or remove files")
	}
}

// isBroken says whether an error comes from a disk, or from a file system, that is
// damaged.
func isBroken(err error) bool {
	for _, errno := range []error{unix.EIO, unix.EUCLEAN, unix.ESHUTDOWN, unix.ENODATA, unix.EREMOTEIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// TroubleOf is the trouble that an error tells of; nil where it says nothing about the
// volume's health.
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

// Report is what a look at a volume showed.
type Report struct {
	// Usage is nil where nobody knows.
	Usage *usage.Usage
	// enforced: the capacity is a limit.
	Enforced bool
	// mostInodes is how many inodes it may have; 0 where that isn't limited.
	mostInodes int64
	// uncounted: it has more files than are counted.
	Uncounted bool
	Troubles  []Trouble
}

func (s *Report) add(reason, format string, arguments ...any) {
	s.Troubles = append(s.Troubles, Trouble{reason, fmt.Sprintf(format, arguments...)})
}
