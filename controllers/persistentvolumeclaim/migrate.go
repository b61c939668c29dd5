package persistentvolumeclaim

import (
	"context"
	"maps"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/migration"
)

// ensureMigrated marks a claim with the CSI driver that took over the in-tree provisioner in
// its annotation. Without the mark the sidecars of that driver ignore the claim.
func (r *Reconciler) ensureMigrated(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	marked := *scope.Claim
	marked.Annotations = maps.Clone(marked.Annotations)
	if !migration.MarkClaim(&marked) {
		return nil, nil
	}
	return step.Annotate(ctx, r.client, scope.Claim, marked.Annotations)
}
