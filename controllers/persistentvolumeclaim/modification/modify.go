// Package modification gives the volumes of bound claims the attributes of the
// VolumeAttributesClass that the claim names. It follows external-resizer: a target whose outcome
// is unknown comes first, whatever the claim names since. It never creates or deletes an object,
// and leaves volumes of other drivers to their resizers.
package modification

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/attributes"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Modifier changes the attributes of the volumes of bound claims.
type Modifier struct {
	client  client.Client
	live    client.Reader
	drivers drivers.Drivers
	open    step.Open
	events  events.EventRecorder
	clock   clock.PassiveClock
}

// New makes a modifier.
func New(deps reconciler.Dependencies, open step.Open) *Modifier {
	return &Modifier{client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), open: open, events: deps.Events, clock: deps.Clock}
}

// Modify gives the volume of a bound claim the attributes of its VolumeAttributesClass:
//
//  1. the claim records the target: from here on that call must finish, or be known to have
//     failed, before another begins;
//  2. the backend changes the volume;
//  3. the PersistentVolume records the class;
//  4. the claim records it, and that nothing is being changed.
//
// A crash after any of them repeats the call, which has the same outcome.
func (m *Modifier) Modify(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	if !isDue(claim) {
		return nil, nil
	}
	pv, err := step.CachedVolume(ctx, m.client, scope)
	if err != nil || pv == nil {
		return nil, err
	}
	if served, err := step.IsServed(ctx, m.drivers, pv); !served || err != nil {
		return nil, err
	}
	if rest := restOf(claim, m.clock.Now()); rest > 0 {
		return &step.Wait{After: rest}, nil
	}
	// The checks above only save live reads: a live read decides which claim has the volume.
	current := &corev1.PersistentVolume{}
	err = m.live.Get(ctx, client.ObjectKeyFromObject(pv), current)
	if err != nil || !binder.TiedTo(current, claim) {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	if served, err := step.IsServed(ctx, m.drivers, current); !served || err != nil {
		return nil, err
	}
	goal := goalOf(claim)
	if goal == "" {
		return nil, m.cancel(ctx, claim)
	}
	return m.modifyTo(ctx, claim, current, goal)
}

// modifyTo changes a volume to the attributes of one class.
func (m *Modifier) modifyTo(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, goal string) (*step.Wait, error) {
	class, err := attributes.ClassNamed(ctx, m.live, goal)
	switch {
	case err != nil:
		return nil, err
	case class == nil || !class.DeletionTimestamp.IsZero() && !mayStillApply(claim):
		return m.awaitClass(ctx, claim, goal, class != nil)
	}
	wanted, err := attributes.Of(class, pv.Spec.CSI.Driver)
	if err != nil {
		return m.fail(ctx, claim, goal, err)
	}
	if waiting, err := m.ensureRecorded(ctx, claim, goal); waiting != nil || err != nil {
		return waiting, err
	}
	opened, err := m.open.Holding(ctx, m.client, claim, pv)
	if err != nil {
		return m.fail(ctx, claim, goal, err)
	}
	if err := backend.Modify(ctx, opened, pv.Spec.CSI.VolumeHandle, wanted); err != nil {
		return m.fail(ctx, claim, goal, err)
	}
	return nil, m.finish(ctx, claim, pv, goal)
}

// ensureRecorded records the target before the backend is called. If it was recorded before, the claim
// is read live: the cache of a new leader may show a change that ended since.
func (m *Modifier) ensureRecorded(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal string) (*step.Wait, error) {
	if !mayStillApply(claim) {
		return nil, m.record(ctx, claim, goal)
	}
	if current, err := step.IsCurrent(ctx, m.live, claim); !current || err != nil {
		return &step.Wait{After: wake.AfterContention}, err
	}
	return nil, nil
}

// awaitClass explains why a change waits for its class. Where a driver may be at work on the target,
// only the same parameters may follow.
func (m *Modifier) awaitClass(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal string, deleted bool) (*step.Wait, error) {
	what := fmt.Sprintf("VolumeAttributesClass %s does not exist: create it, or name another in the claim", goal)
	switch {
	case deleted:
		what = fmt.Sprintf("VolumeAttributesClass %s is being deleted: name another in the claim", goal)
	case mayStillApply(claim):
		what = fmt.Sprintf("VolumeAttributesClass %s is gone, and the volume may have some of its attributes: create it again with the same parameters", goal)
	}
	return &step.Wait{After: wake.WithoutAnswer}, m.recordMissing(ctx, claim, goal, what)
}
