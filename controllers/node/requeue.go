package node

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/wake"
)

// requeue collects the delay before the next pass.
type requeue struct{ after time.Duration }

func (r *requeue) in(after time.Duration) {
	if after > 0 && (r.after == 0 || after < r.after) {
		r.after = after
	}
}

// afterConflict retries soon after a conflict: the decision must be made again from what the
// other writer wrote.
func (r *requeue) afterConflict(err error) error {
	if apierrors.IsConflict(err) {
		r.in(wake.AfterConflict)
		return nil
	}
	return err
}

// result returns when to check again what a plan waits for. The deletion of an attachment
// wakes its waiters; the removal from volumesAttached of another node does not.
func (r *requeue) result(plan []attach.Step) ctrl.Result {
	for _, step := range plan {
		if step.Action != attach.Wait {
			continue
		}
		r.in(step.After)
		if slices.ContainsFunc(step.OtherNodes, func(other attach.OtherNode) bool { return other.Attachment == nil }) {
			r.in(wake.AfterContention)
		}
	}
	return ctrl.Result{RequeueAfter: r.after}
}
