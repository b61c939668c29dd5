package node

import (
	"context"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// forcer decides which steps may be by force.
type forcer struct {
	client  client.Reader
	storage *opener.Opener
	drivers drivers.Drivers
	waking  *wake.Source
	// patience is how long a node must have been not Ready, or gone, until volumes of foreign
	// drivers are detached from it by force.
	patience time.Duration
	// missing is when each node was first seen to be gone.
	missing wake.Instants
}

// force replaces waits for a node that may be forced by the forced steps. The other waits get
// the time of the next check.
func (r *forcer) force(ctx context.Context, s *snapshot, plan []attach.Step) ([]attach.Step, error) {
	condition := attach.ConditionOf(s.Node)
	if s.Node != nil && condition.Ready {
		return plan, nil
	}
	var forced []attach.Step
	for _, step := range plan {
		if !step.Forcible() {
			forced = append(forced, step)
			continue
		}
		may, err := r.mayForce(ctx, s, step, condition)
		if err != nil {
			return nil, err
		}
		if !may.Allowed {
			step.After = may.After
			forced = append(forced, step)
			continue
		}
		forced = append(forced, step.ByForce(s.Node)...)
	}
	return forced, nil
}

// mayForce applies the policy for the volume: that of our StorageBackend, or this manager's
// own for foreign drivers. It cannot query their cloud.
func (r *forcer) mayForce(ctx context.Context, s *snapshot, step attach.Step, condition attach.NodeCondition) (attach.Force, error) {
	attaches, err := r.drivers.Attaches(ctx, step.Volume.Driver)
	switch {
	case err != nil:
		return attach.Force{}, err
	case !attaches:
		if s.Node == nil {
			condition.MissingSince = r.missing.Since(s.Name, s.Now)
		}
		return attach.MayForce(condition, attach.Policy{After: r.patience, MissingCounts: true}, s.Now), nil
	}
	object, err := r.backendOf(ctx, step)
	if err != nil || object == nil {
		// Without the backend no detach is possible, and there is nothing to report.
		return attach.Force{After: wake.WithoutAnswer}, err
	}
	machine, err := r.observe(ctx, s, step.Attachment, object)
	switch {
	case backend.Unfinished(err):
		return attach.Force{After: wake.WithoutAnswer}, nil
	case err != nil:
		return attach.Force{}, err
	}
	condition.Machine = machine
	policy := attach.PolicyOf(object.Spec.Attachment)
	if object.Spec.CSI != nil {
		// No cloud can be queried about the machine.
		policy.MissingCounts = true
	}
	if s.Node == nil && policy.MissingCounts {
		condition.MissingSince = r.missing.Since(s.Name, s.Now)
	}
	may := attach.MayForce(condition, policy, s.Now)
	if may.Allowed {
		return may, nil
	}
	return r.orNothingAttached(ctx, s, step, object, may)
}

// orNothingAttached allows what time and cloud do not, if the backend reports that the volume
// is not attached to the machine. The detach checks that with the backend again.
func (r *forcer) orNothingAttached(ctx context.Context, s *snapshot, step attach.Step, of *stowagev1alpha1.StorageBackend, refused attach.Force) (attach.Force, error) {
	if step.Attachment == nil {
		return refused, nil
	}
	intent, err := attachintent.Of(step.Attachment)
	if err != nil || intent == nil {
		return refused, nil //nolint:nilerr // nothing records what is attached
	}
	is, err := r.isAttached(ctx, s, step.Attachment, of, intent)
	switch {
	case backend.Unfinished(err):
		return attach.Force{After: wake.WithoutAnswer}, nil
	case err != nil || is:
		return refused, nil //nolint:nilerr // the answer is not about the volume
	}
	return attach.Force{Allowed: true, Reason: "the volume isn't attached to the node's machine"}, nil
}

func (r *forcer) isAttached(ctx context.Context, s *snapshot, object *storagev1.VolumeAttachment, of *stowagev1alpha1.StorageBackend, intent *attachintent.Intent) (bool, error) {
	about := "attached " + of.Name + " " + object.Name
	if answer, known := s.answers[about].(bool); known {
		return answer, nil
	}
	opened, err := r.open(s, of)
	if err != nil {
		return false, err
	}
	attacher, err := attachintent.AttacherOf(opened, of.Name)
	if err != nil {
		return false, err
	}
	is, err := attacher.IsAttached(ctx, intent.Volume, s.machineOf(object))
	if err == nil {
		s.answers[about] = is
	}
	return is, err
}

// open opens a backend for calls that a node waits for.
func (r *forcer) open(s *snapshot, of *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return r.storage.Open(of, func() { r.waking.Add(types.NamespacedName{Name: s.Name}) })
}

// backendOf finds the StorageBackend of a volume of ours, from the attachment's annotation or
// from the PersistentVolume. It returns nil if neither is left.
func (r *forcer) backendOf(ctx context.Context, step attach.Step) (*stowagev1alpha1.StorageBackend, error) {
	name, err := r.backendName(ctx, step)
	if err != nil || name == "" {
		return nil, err
	}
	object, err := liveread.Find(ctx, name, &stowagev1alpha1.StorageBackend{}, r.client)
	return object, wrap.Error(err, "reading StorageBackend %s", name)
}

func (r *forcer) backendName(ctx context.Context, step attach.Step) (string, error) {
	if step.Attachment != nil {
		if intent, err := attachintent.Of(step.Attachment); err == nil && intent != nil {
			return intent.Backend, nil
		}
	}
	volumes, err := index.VolumesOf(ctx, r.client, step.Volume.Key(), wake.Unhurried)
	for i := range volumes {
		for _, name := range index.BackendOf(&volumes[i]) {
			return name, nil
		}
	}
	return "", err
}

// observe queries a backend for the state of the machine that a node is, or was.
func (r *forcer) observe(ctx context.Context, s *snapshot, object *storagev1.VolumeAttachment, of *stowagev1alpha1.StorageBackend) (backend.Machine, error) {
	machineID := s.machineOf(object)
	about := "machine " + of.Name + " " + machineID.ProviderID
	if answer, known := s.answers[about].(backend.Machine); known {
		return answer, nil
	}
	opened, err := r.open(s, of)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the cloud is not called", "backend", of.Name, "why", err.Error())
		return backend.MachineUnknown, nil
	}
	machine, err := backend.Observe(ctx, opened, machineID)
	if err == nil {
		// It also records that the cloud does not answer: each pass calls it and logs it once.
		s.answers[about] = machine
	}
	return machine, err
}
