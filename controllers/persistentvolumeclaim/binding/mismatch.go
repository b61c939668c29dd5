package binding

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ReportMismatches records which volumes that are reserved for a claim do not fit. It does so
// when the claim takes another volume, because nothing else would show it. If a controller
// tied the volume, which no person expects, it does so at once. While the claim waits, its
// condition shows it.
func (r *Binder) ReportMismatches(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	if scope.Volume != nil && binder.TiedTo(scope.Volume, scope.Claim) {
		return nil, nil
	}
	return nil, r.ReportUnfit(ctx, scope, scope.Volume != nil)
}

// ReportUnfit records events about volumes that are tied to the claim, once, and about those
// that are reserved by name, if ofReserved.
func (r *Binder) ReportUnfit(ctx context.Context, scope *step.Scope, ofReserved bool) error {
	claim := scope.Claim
	key := client.ObjectKeyFromObject(claim)
	reserved, err := index.VolumesFor(ctx, r.client, key, wake.Unhurried)
	if err != nil {
		return err
	}
	unfit := slices.DeleteFunc(reserved, func(pv corev1.PersistentVolume) bool {
		return !binder.ReservedFor(&pv, claim) || binder.Fit(&pv, scope.Request) == binder.Fits
	})
	tied := ""
	for i := range unfit {
		if binder.TiedTo(&unfit[i], claim) {
			tied += fmt.Sprintln(unfit[i].Name, binder.Fit(&unfit[i], scope.Request))
		}
	}
	ofTied := r.mismatches.IsNew(key, tied)
	for i := range unfit {
		pv, cause := &unfit[i], binder.Fit(&unfit[i], scope.Request)
		if isTied := binder.TiedTo(pv, claim); isTied && !ofTied || !isTied && !ofReserved {
			continue
		}
		r.events.Eventf(claim, pv, corev1.EventTypeWarning, event.VolumeMismatch, "Bind", "volume %s is reserved for this claim, and does not fit: %s", pv.Name, cause)
		event.Unlogged(r.events).Eventf(pv, claim, corev1.EventTypeWarning, event.VolumeMismatch, "Bind", "claim %s, for which the volume is reserved, can't have it: %s", key, cause)
	}
	return nil
}
