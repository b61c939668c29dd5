package node

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/wake"
)

// planner decides the steps for a node.
type planner struct {
	inspector *inspector
	forcer    *forcer
	apiServer apiServer
}

// plan decides the steps for a node. Before anything by force, it reads everything live and
// decides again. A stale cache shows neither that the node is Ready again nor that a pod needs
// the volume.
func (r *planner) plan(ctx context.Context, cached *snapshot) (*snapshot, []attach.Step, error) {
	if cached.Node != nil || len(cached.Attachments) == 0 {
		r.forcer.missing.Forget(cached.Name)
	}
	plan, err := r.forcer.force(ctx, cached, attach.Plan(cached.View))
	if err != nil || !slices.ContainsFunc(plan, func(step attach.Step) bool { return step.Forced }) {
		return cached, plan, err
	}
	live, err := r.inspector.inspect(ctx, r.apiServer, cached.Name)
	if err != nil {
		return nil, nil, err
	}
	// The cloud's answers of a moment ago are kept. An answer that takes longer than a pass
	// waits would be late each time.
	live.answers = cached.answers
	plan, err = r.forcer.force(ctx, live, attach.Plan(live.View))
	return live, plan, err
}

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
