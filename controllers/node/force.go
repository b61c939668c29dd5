package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// plan decides the steps for a node. Before anything by force, it reads everything live and
// decides again. A stale cache shows neither that the node is Ready again nor that a pod wants
// the volume.
func (r *Reconciler) plan(ctx context.Context, seen *nodeView) (*nodeView, []attach.Step, error) {
	if seen.Node != nil || len(seen.Attachments) == 0 {
		r.missing.Forget(seen.Name)
	}
	plan := attach.Plan(seen.View)
	forced, err := r.force(ctx, seen, plan)
	if err != nil || !anyForced(forced) {
		return seen, forced, err
	}
	// The cloud's answers of a moment ago are kept. An answer that takes longer than a pass
	// waits would be late each time.
	heard := seen.heard
	if seen, err = r.look(ctx, liveNode{r}, seen.Name); err != nil {
		return nil, nil, err
	}
	seen.heard = heard
	plan, err = r.force(ctx, seen, attach.Plan(seen.View))
	return seen, plan, err
}

// force replaces waits for a node that may be forced by the forced steps. The other waits get
// the time of the next check.
func (r *Reconciler) force(ctx context.Context, seen *nodeView, plan []attach.Step) ([]attach.Step, error) {
	condition := attach.ConditionOf(seen.Node)
	if seen.Node != nil && condition.Ready {
		return plan, nil
	}
	var forced []attach.Step
	for _, step := range plan {
		if !step.Forcible() {
			forced = append(forced, step)
			continue
		}
		may, err := r.mayForce(ctx, seen, step, condition)
		if err != nil {
			return nil, err
		}
		if !may.Allowed {
			step.After = may.After
			forced = append(forced, step)
			continue
		}
		ctrl.LoggerFrom(ctx).V(1).Info("taking a volume by force", "node", seen.Name, "volume", step.Volume.String(), "why", may.Reason)
		forced = append(forced, step.ByForce(seen.Node)...)
	}
	return forced, nil
}

func anyForced(plan []attach.Step) bool {
	for _, step := range plan {
		if step.Forced {
			return true
		}
	}
	return false
}

// mayForce applies the policy for the volume: that of our StorageBackend, or this manager's
// own for foreign drivers. It cannot query their cloud.
func (r *Reconciler) mayForce(ctx context.Context, seen *nodeView, step attach.Step, condition attach.NodeCondition) (attach.Force, error) {
	if !backend.NeedsAttach(step.Volume.Driver) {
		if seen.Node == nil {
			condition.MissingSince = r.missing.Since(seen.Name, seen.Now)
		}
		return attach.MayForce(condition, attach.Policy{After: r.patience, MissingCounts: true}, seen.Now), nil
	}
	object, err := r.backendOf(ctx, step)
	if err != nil || object == nil {
		// Without the backend no detach is possible, and there is nothing to report.
		return attach.Force{After: wake.WithoutAnswer}, err
	}
	machine, err := r.observe(ctx, seen, step.Attachment, object)
	switch {
	case backend.Unfinished(err):
		return attach.Force{After: wake.WithoutAnswer}, nil
	case err != nil:
		return attach.Force{}, err
	}
	condition.Machine = machine
	may := attach.MayForce(condition, attach.PolicyOf(object.Spec.Attachment), seen.Now)
	if may.Allowed {
		return may, nil
	}
	return r.orNothingAttached(ctx, seen, step, object, may)
}

// orNothingAttached allows what time and cloud do not, if the backend reports that the volume
// is not attached to the machine. The detach checks that with the backend again.
func (r *Reconciler) orNothingAttached(ctx context.Context, seen *nodeView, step attach.Step, of *stowagev1alpha1.StorageBackend, refused attach.Force) (attach.Force, error) {
	if step.Attachment == nil {
		return refused, nil
	}
	intent, err := attachintent.Of(step.Attachment)
	if err != nil || intent == nil {
		return refused, nil //nolint:nilerr // nothing says what is attached
	}
	is, err := r.isAttached(ctx, seen, step.Attachment, of, intent)
	switch {
	case backend.Unfinished(err):
		return attach.Force{After: wake.WithoutAnswer}, nil
	case err != nil || is:
		return refused, nil //nolint:nilerr // it says nothing of the volume
	}
	return attach.Force{Allowed: true, Reason: "the volume isn't attached to the node's machine"}, nil
}

func (r *Reconciler) isAttached(ctx context.Context, seen *nodeView, object *storagev1.VolumeAttachment, of *stowagev1alpha1.StorageBackend, intent *attachintent.Intent) (bool, error) {
	about := "attached " + of.Name + " " + object.Name
	if heard, known := seen.heard[about].(bool); known {
		return heard, nil
	}
	opened, err := r.openFor(seen, of)
	if err != nil {
		return false, err
	}
	attacher, err := attachintent.AttacherOf(opened, of.Name)
	if err != nil {
		return false, err
	}
	is, err := attacher.IsAttached(ctx, intent.Volume, machineOf(seen, object))
	if err == nil {
		seen.heard[about] = is
	}
	return is, err
}

// openFor opens a backend for calls that a node waits for.
func (r *Reconciler) openFor(seen *nodeView, of *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return r.storage.Open(of, func() { r.waking.Add(types.NamespacedName{Name: seen.Name}) })
}

// BackendOf finds the StorageBackend of a volume of ours, from the attachment's annotation or
// from the PersistentVolume. It returns nil if neither is left.
func (r *Reconciler) backendOf(ctx context.Context, step attach.Step) (*stowagev1alpha1.StorageBackend, error) {
	name, err := r.backendName(ctx, step)
	if err != nil || name == "" {
		return nil, err
	}
	object := &stowagev1alpha1.StorageBackend{}
	err = r.client.Get(ctx, client.ObjectKey{Name: name}, object, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading StorageBackend %s: %w", name, err)
	}
	return object, nil
}

func (r *Reconciler) backendName(ctx context.Context, step attach.Step) (string, error) {
	if step.Attachment != nil {
		if intent, err := attachintent.Of(step.Attachment); err == nil && intent != nil {
			return intent.Backend, nil
		}
	}
	volumes := &corev1.PersistentVolumeList{}
	handle := step.Volume.Key()
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: handle}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the volumes of handle %s: %w", handle, err)
	}
	for i := range volumes.Items {
		for _, name := range index.BackendOf(&volumes.Items[i]) {
			return name, nil
		}
	}
	return "", nil
}

// observe queries a backend for the state of the machine that a node is, or was.
func (r *Reconciler) observe(ctx context.Context, seen *nodeView, object *storagev1.VolumeAttachment, of *stowagev1alpha1.StorageBackend) (backend.Machine, error) {
	machineID := machineOf(seen, object)
	about := "machine " + of.Name + " " + machineID.ProviderID
	if heard, known := seen.heard[about].(backend.Machine); known {
		return heard, nil
	}
	opened, err := r.openFor(seen, of)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("not asking the cloud", "backend", of.Name, "why", err.Error())
		return backend.MachineUnknown, nil
	}
	machine, err := backend.Observe(ctx, opened, machineID)
	if err == nil {
		// It also records that the cloud does not answer: each pass calls it and logs it once.
		seen.heard[about] = machine
	}
	return machine, err
}

// machineOf returns the machine that a volume is attached to: another machine may have the
// node's name by now.
func machineOf(seen *nodeView, object *storagev1.VolumeAttachment) backend.NodeIdentity {
	identity := backend.NodeIdentity{Name: seen.Name}
	if object != nil {
		intent, err := attachintent.Of(object)
		if err != nil {
			intent = nil
		}
		identity.ProviderID = attachintent.InstanceOf(object, intent)
	}
	if identity.ProviderID == "" && seen.Node != nil {
		identity.ProviderID = seen.Node.Spec.ProviderID
	}
	return identity
}
