package persistentvolume

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// validateAgain is when a driver without an answer is asked again about a static volume.
const validateAgain = 5 * time.Minute

// reportUnusable records once that a static volume promises what no volume of its backend can do, or
// what its driver denies. A claim binds to it all the same, and otherwise the first pod would be the one
// to find out.
func (r *Reconciler) reportUnusable(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	names := index.BackendOf(pv)
	if !pv.DeletionTimestamp.IsZero() || len(names) == 0 || provisioned.Here(pv) {
		return false, ctrl.Result{}, nil
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: names[0]}, object); err != nil {
		return false, ctrl.Result{}, client.IgnoreNotFound(err)
	}
	opened, err := r.openFor(pv, object)
	if err != nil {
		return false, ctrl.Result{}, nil //nolint:nilerr // Ready of the backend says it
	}
	found := answer{}
	if err := opened.Capabilities().CheckUse(pv.Spec.AccessModes, ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)); err != nil {
		found.problem = err.Error()
	} else if found = r.answers.about(ctx, pv, opened); found.pending {
		return false, ctrl.Result{RequeueAfter: found.again}, nil
	}
	if r.unusable.IsNew(client.ObjectKeyFromObject(pv), found.problem) && found.problem != "" {
		r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeUnusable, "Check",
			"pods can't use the volume as its PersistentVolume says, with backend %s: %s", object.Name, found.problem)
	}
	return false, ctrl.Result{}, nil
}

// answers are what drivers said of static volumes, by the names of the volumes. Each is asked for once, and
// once more after a change of the object or a restart. The zero value is usable.
type answers struct{ of sync.Map }

type answer struct {
	// promise is what the object said when its volume was asked about.
	promise string
	// problem is what pods can't do; "" for nothing.
	problem string
	// pending: there is no answer yet. The volume is reconciled again by the call's end or, where the
	// driver gave none, after this time.
	pending bool
	again   time.Duration
}

// about returns what a driver objects to.
func (a *answers) about(ctx context.Context, pv *corev1.PersistentVolume, opened backend.Backend) answer {
	if pv.Annotations[storagehelpers.AnnDynamicallyProvisioned] == pv.Spec.CSI.Driver {
		return answer{} // The driver made it so, for another provisioner.
	}
	promise := backend.PromiseOf(pv)
	if known, has := a.of.Load(pv.Name); has && known.(answer).promise == promise {
		return known.(answer)
	}
	err := backend.Validate(ctx, opened, pv)
	said := answer{promise: promise}
	switch kind := backend.KindOf(err); {
	case kind == backend.Invalid || kind == backend.NotFound:
		said.problem = err.Error()
	case backend.Unfinished(err):
		return answer{pending: true}
	case err != nil:
		return answer{pending: true, again: validateAgain}
	}
	a.of.Store(pv.Name, said)
	return said
}

func (a *answers) forget(name string) { a.of.Delete(name) }
