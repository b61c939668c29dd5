package diskagent

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
)

// diskReasonOf is the reason of a NodeDisk's condition that tells of an error.
func diskReasonOf(err error) string {
	reasons := []struct {
		kind   error
		reason string
	}{
		{layout.ErrNoDisk, stowagev1alpha1.ReasonDiskMissing},
		{identity.ErrForeignDisk, stowagev1alpha1.ReasonForeignDisk},
		{identity.ErrPathTaken, stowagev1alpha1.ReasonPathTaken},
		{identity.ErrPathMissing, stowagev1alpha1.ReasonPathMissing},
		{identity.ErrSymlink, stowagev1alpha1.ReasonSymlink},
		{identity.ErrNotDirectory, stowagev1alpha1.ReasonNotADirectory},
		{identity.ErrReadOnly, stowagev1alpha1.ReasonReadOnly},
		{identity.ErrNotWritable, stowagev1alpha1.ReasonNotWritable},
		{safepath.ErrOutside, stowagev1alpha1.ReasonPathOutsideBase},
	}
	for _, candidate := range reasons {
		if errors.Is(err, candidate.kind) {
			return candidate.reason
		}
	}
	return stowagev1alpha1.ReasonUnavailable
}

// setDiskReady says, in memory, whether volumes can be made on a disk.
func setDiskReady(disk *stowagev1alpha1.NodeDisk, problem error, base layout.Base) {
	if problem != nil {
		setDiskCondition(disk, stowagev1alpha1.ReadyCondition, diskReasonOf(problem), layout.MessageOf(problem, base))
		return
	}
	setDiskCondition(disk, stowagev1alpha1.ReadyCondition, stowagev1alpha1.ReasonReady, "volumes can be made on the disk")
}

// setRoom says, in memory, whether a disk has room for volumes. How the disk is used
// stands in the numbers of the status, which are written at intervals.
func setRoom(disk *stowagev1alpha1.NodeDisk, measured room.Room) {
	reason, message := measured.Fullness()
	setDiskCondition(disk, stowagev1alpha1.HasRoomCondition, reason, message)
}

// setUnknownRoom says, in memory, that nobody knows a disk's room.
func setUnknownRoom(disk *stowagev1alpha1.NodeDisk) {
	disk.Status.Available = nil
	meta.SetStatusCondition(&disk.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.HasRoomCondition, Status: metav1.ConditionUnknown, ObservedGeneration: disk.Generation,
		Reason: stowagev1alpha1.ReasonUnavailable, Message: "not asked while the disk isn't Ready",
	})
}

func setDiskCondition(disk *stowagev1alpha1.NodeDisk, kind, reason, text string) {
	status := metav1.ConditionFalse
	if reason == stowagev1alpha1.ReasonReady {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&disk.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: disk.Generation,
	})
}
