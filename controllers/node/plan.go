package node

import (
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/attach"
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
