package diskagent

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/condition"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
)

var reasons = condition.Reasons{
	{Kind: layout.ErrNoDisk, Reason: stowagev1alpha1.ReasonDiskMissing},
	{Kind: identity.ErrForeignDisk, Reason: stowagev1alpha1.ReasonForeignDisk},
	{Kind: identity.ErrPathTaken, Reason: stowagev1alpha1.ReasonPathTaken},
	{Kind: identity.ErrPathMissing, Reason: stowagev1alpha1.ReasonPathMissing},
	{Kind: identity.ErrSymlink, Reason: stowagev1alpha1.ReasonSymlink},
	{Kind: identity.ErrNotDirectory, Reason: stowagev1alpha1.ReasonNotADirectory},
	{Kind: identity.ErrReadOnly, Reason: stowagev1alpha1.ReasonReadOnly},
	{Kind: identity.ErrNotWritable, Reason: stowagev1alpha1.ReasonNotWritable},
	{Kind: safepath.ErrOutside, Reason: stowagev1alpha1.ReasonPathOutsideBase},
}

// setReady sets in memory whether volumes can be made on a disk. The room of a disk with a
// problem is unknown: its numbers may be another disk's.
func setReady(disk *stowagev1alpha1.NodeDisk, problem error, base layout.Base) {
	if problem == nil {
		setCondition(disk, stowagev1alpha1.ReadyCondition, stowagev1alpha1.ReasonReady, "volumes can be made on the disk")
		return
	}
	setCondition(disk, stowagev1alpha1.ReadyCondition, reasons.Of(problem), layout.MessageOf(problem, base))
	disk.Status.Available = nil
	meta.SetStatusCondition(&disk.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.HasRoomCondition, Status: metav1.ConditionUnknown, ObservedGeneration: disk.Generation,
		Reason: stowagev1alpha1.ReasonUnavailable, Message: "not measured while the disk isn't Ready",
	})
}

// setRoom sets in memory whether a disk has room for volumes. Its message has no usage: that
// changes all the time, and the numbers of the status have it.
func setRoom(disk *stowagev1alpha1.NodeDisk, measured room.Room) {
	reason, message := measured.Fullness()
	setCondition(disk, stowagev1alpha1.HasRoomCondition, reason, message)
}

func setCondition(disk *stowagev1alpha1.NodeDisk, kind, reason, message string) {
	condition.Set(&disk.Status.Conditions, metav1.Condition{Type: kind, Reason: reason, Message: message, ObservedGeneration: disk.Generation})
}
