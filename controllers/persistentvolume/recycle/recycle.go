// Package recycle empties volumes of policy Recycle, which people made, so that other claims
// can have them. The manager empties NFS volumes itself, and hostPath volumes through the node
// agent and a NodeRecycling. It decides from live reads, and again after the directory has
// the name of this process's token. A volume that cannot be emptied becomes Failed.
package recycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Recycler empties volumes of policy Recycle, so that other claims can have them.
type Recycler struct {
	client   client.Client
	live     client.Reader
	storage  *opener.Opener
	wake     func(types.NamespacedName)
	events   events.EventRecorder
	recorded *event.Last
}

// New makes a recycler. It calls wake for a volume when a call has an answer.
func New(deps reconciler.Dependencies, wake func(types.NamespacedName), recorded *event.Last) *Recycler {
	return &Recycler{client: deps.Client, live: deps.Live, storage: deps.Storage, wake: wake, events: deps.Events, recorded: recorded}
}

// recyclingsPerServer is how many directories of one server are emptied at once.
const recyclingsPerServer = 4

// Recycle empties the directory of a released volume of policy Recycle, and makes the volume
// available again. The order survives a crash anywhere and two leaders at once. A directory on
// a node is emptied by that node's agent; else:
//
//	decide, from live reads
//	write this manager's token to the PersistentVolume, with the resourceVersion of that
//	  read: another manager that recycles it cannot finish any more
//	prepare the directory under the token's name; decide again, from live reads; then
//	  remove the data
//	remove the claimRef of the volume, with the resourceVersion of what was decided on
func (r *Recycler) Recycle(ctx context.Context, pv *corev1.PersistentVolume) (ctrl.Result, error) {
	current := &corev1.PersistentVolume{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(pv), current); err != nil {
		return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	if current.UID != pv.UID || !recyclable(current) {
		return ctrl.Result{}, nil
	}
	if held, err := uses.Claimed(ctx, r.live, current); held || err != nil {
		return ctrl.Result{}, err
	}
	if why := r.whyNotRecyclable(current); why != "" {
		return ctrl.Result{}, r.giveUpRecycling(ctx, current, why)
	}
	if err := r.checkUnused(ctx, current); err != nil {
		return r.recycleLater(ctx, current, err)
	}
	if pathOnNode(current) != "" {
		return r.recycleOnNode(ctx, current)
	}
	if err := r.ensureToken(ctx, current); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.empty(ctx, current); err != nil {
		return r.recycleLater(ctx, current, err)
	}
	return ctrl.Result{}, r.free(ctx, current)
}

// recyclable reports whether a volume must be emptied for the next claim.
func recyclable(pv *corev1.PersistentVolume) bool {
	return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle &&
		pv.DeletionTimestamp.IsZero() && pv.Status.Phase == corev1.VolumeReleased && uses.WasClaimed(pv)
}

// ensureToken makes this manager the one that empties a volume.
func (r *Recycler) ensureToken(ctx context.Context, pv *corev1.PersistentVolume) error {
	if pv.Annotations[stowagev1alpha1.RecyclingAnnotation] == r.storage.Token {
		return nil
	}
	before := pv.DeepCopy()
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, stowagev1alpha1.RecyclingAnnotation, r.storage.Token)
	return patch.Volume(ctx, r.client, before, pv, "beginning to recycle")
}

// empty empties the volume's directory, through the queue.
func (r *Recycler) empty(ctx context.Context, pv *corev1.PersistentVolume) error {
	share, key := pv.Spec.NFS, client.ObjectKeyFromObject(pv)
	recycler := r.storage.Recycler
	if r.storage.Queue != nil {
		target := backendqueue.Target{
			Name: "NFS server " + share.Server, Limit: recyclingsPerServer,
			// The answer for one claim must not count for the next claim of the volume.
			Version: string(pv.UID) + "/" + pv.ResourceVersion,
		}
		recycler = r.storage.Queue.ServeRecycler(target, recycler, func() { r.wake(key) })
	}
	decided := pv.DeepCopy()
	return recycler.Recycle(ctx, backend.Recycling{
		Volume: pv.Name, Server: share.Server, Path: share.Path, MountOptions: pv.Spec.MountOptions, Token: r.storage.Token,
		Data:    string(pv.UID) + "/" + string(pv.Spec.ClaimRef.UID),
		Confirm: func(ctx context.Context) error { return r.confirmRecycling(ctx, decided) },
	})
}

// confirmRecycling decides again, after the target directory of the data was prepared. The
// volume, and everything else that decides, must be unchanged.
func (r *Recycler) confirmRecycling(ctx context.Context, decided *corev1.PersistentVolume) error {
	current := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(decided), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading volume %s: %w", decided.Name, err)
	}
	if current.UID != decided.UID || current.ResourceVersion != decided.ResourceVersion {
		return backend.InProgress.Errorf("volume %s was changed meanwhile: it is looked at again", decided.Name)
	}
	return r.checkUnused(ctx, current)
}

// free removes the claimRef of an empty volume. A claimRef that a person wrote keeps its name,
// as for every volume that becomes free.
func (r *Recycler) free(ctx context.Context, pv *corev1.PersistentVolume) error {
	before := pv.DeepCopy()
	delete(pv.Annotations, stowagev1alpha1.RecyclingAnnotation)
	binder.UnbindVolume(pv)
	if err := patch.Volume(ctx, r.client, before, pv, "freeing"); err != nil {
		return err
	}
	r.recorded.Forget(client.ObjectKeyFromObject(pv))
	r.events.Eventf(pv, nil, corev1.EventTypeNormal, "VolumeRecycled", "Recycle", "the data of volume %s is removed: it can be claimed again", pv.Name)
	return nil
}

// recycleLater records, once, why a volume is not recycled yet. A problem that only a person
// can solve makes the volume Failed.
func (r *Recycler) recycleLater(ctx context.Context, pv *corev1.PersistentVolume, err error) (ctrl.Result, error) {
	switch {
	case errors.Is(err, backend.Invalid):
		return ctrl.Result{}, r.giveUpRecycling(ctx, pv, err.Error())
	case errors.Is(err, uses.ErrKept):
		r.tellRecycling(pv, corev1.EventTypeNormal, "VolumeRecycle", err)
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	case errors.Is(err, backend.InProgress):
		r.tellRecycling(pv, corev1.EventTypeNormal, "VolumeRecycle", err)
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	case errors.Is(err, backend.Queued):
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	r.tellRecycling(pv, corev1.EventTypeWarning, "VolumeFailedRecycle", err)
	return ctrl.Result{}, fmt.Errorf("recycling volume %s: %w", pv.Name, err)
}

func (r *Recycler) tellRecycling(pv *corev1.PersistentVolume, kind, reason string, err error) {
	if r.recorded.IsNews(client.ObjectKeyFromObject(pv), err.Error()) {
		r.events.Eventf(pv, nil, kind, reason, "Recycle", "%v", err)
	}
}

// giveUpRecycling sets a volume to Failed: a person has to act.
func (r *Recycler) giveUpRecycling(ctx context.Context, pv *corev1.PersistentVolume, why string) error {
	message := why + ": remove its data by hand, then take spec.claimRef off the PersistentVolume, or delete it"
	if err := patch.SetPhase(ctx, r.client, pv, corev1.VolumeFailed, message); err != nil {
		return err
	}
	r.events.Eventf(pv, nil, corev1.EventTypeWarning, "VolumeFailedRecycle", "Recycle", "%s", message)
	return nil
}
