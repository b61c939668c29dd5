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
		return false, ctrl.Result{}, nil // Ready of the backend says it.
	}
	problem := opened.Capabilities().CheckUse(pv.Spec.AccessModes, ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
	if problem == nil {
		answered, again := true, time.Duration(0)
		if problem, answered, again = r.answers.about(ctx, pv, opened); !answered {
			return false, ctrl.Result{RequeueAfter: again}, nil
		}
	}
	text := ""
	if problem != nil {
		text = problem.Error()
	}
	if r.unusable.IsNew(client.ObjectKeyFromObject(pv), text) && text != "" {
		r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeUnusable, "Check",
			"pods can't use the volume as its PersistentVolume says, with backend %s: %s", object.Name, text)
	}
	return false, ctrl.Result{}, nil
}

// answers are what drivers said of static volumes, by the names of the volumes. Each is asked for once, and
// once more after a change of the object or a restart. The zero value is usable.
type answers struct{ of sync.Map }

type answer struct {
	promise string
	problem error
}

// about returns what a driver objects to. Without an answer yet, the volume is reconciled again: by the
// call's end or, where the driver gave none, after a while.
func (a *answers) about(ctx context.Context, pv *corev1.PersistentVolume, opened backend.Backend) (problem error, answered bool, again time.Duration) {
	if pv.Annotations[storagehelpers.AnnDynamicallyProvisioned] == pv.Spec.CSI.Driver {
		return nil, true, 0 // The driver made it so, for another provisioner.
	}
	promise := backend.PromiseOf(pv)
	if known, has := a.of.Load(pv.Name); has && known.(answer).promise == promise {
		return known.(answer).problem, true, 0
	}
	err := backend.Validate(ctx, opened, pv)
	switch kind := backend.KindOf(err); {
	case err == nil || kind == backend.Invalid || kind == backend.NotFound:
		a.of.Store(pv.Name, answer{promise: promise, problem: err})
		return err, true, 0
	case backend.Unfinished(err):
		return nil, false, 0
	default:
		return nil, false, validateAgain
	}
}

func (a *answers) forget(name string) { a.of.Delete(name) }
