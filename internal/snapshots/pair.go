package snapshots

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/message"
)

// Pair is what a VolumeSnapshot and its content say of each other, or a VolumeGroupSnapshot and its content.
type Pair struct {
	// Kind is that of the first.
	Kind string
	// Of is the first, Bound the content in its status, and Static whether its spec names a content.
	Of     metav1.Object
	Bound  string
	Static bool
	// Content is the name of the second, and Ref the object that it names.
	Content string
	Ref     corev1.ObjectReference
	// Handle and Volume are the fields with what is in the storage, and HasHandle and HasVolume whether the content has them.
	Handle, Volume       string
	HasHandle, HasVolume bool
	Reasons              Reasons
}

// Reasons are those of a Pair's events.
type Reasons struct{ Mismatch, ContentMisbound, Misbound string }

// Check returns why the two don't belong together. A content that a person made names the other without its UID at first.
func (p *Pair) Check() error {
	named := p.Ref.Namespace == p.Of.GetNamespace() && p.Ref.Name == p.Of.GetName()
	switch {
	case p.Static && !p.HasHandle:
		return NewProblem(p.Reasons.Mismatch, "%sContent %s has no %s: name one that has, in a new %s", p.Kind, p.Content, p.Handle, p.Kind)
	case !p.Static && !p.HasVolume:
		return NewProblem(p.Reasons.Mismatch, "%sContent %s was not made for the %s: it has no %s", p.Kind, p.Content, p.Kind, p.Volume)
	case !named || p.Ref.UID != p.Of.GetUID() && (p.Ref.UID != "" || !p.Static):
		return NewProblem(p.Reasons.ContentMisbound, "%sContent %s is bound to a different snapshot", p.Kind, p.Content)
	case p.Bound != "" && p.Bound != p.Content:
		return NewProblem(p.Reasons.Misbound, "the %s is bound to %sContent %s, and its own is %s", p.Kind, p.Kind, p.Bound, p.Content)
	}
	return nil
}

// Failure returns the error for a status, and when the problem is looked at again: after as long as it has lasted. It is nil
// if the status has it.
func Failure(had *snapshotv1.VolumeSnapshotError, ready *bool, problem *Problem, now time.Time) (*snapshotv1.VolumeSnapshotError, time.Duration) {
	text, at := message.Cut(problem.Text, message.MaxStatus), metav1.NewTime(now)
	if had != nil && ptr.Deref(had.Message, "") == text && !ptr.Deref(ready, true) {
		return nil, min(max(now.Sub(ptr.Deref(had.Time, at).Time), Backoff), BackoffMax)
	}
	return &snapshotv1.VolumeSnapshotError{Time: &at, Message: &text}, Backoff
}
