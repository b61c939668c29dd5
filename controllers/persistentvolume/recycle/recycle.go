// Package recycle empties volumes of policy Recycle, which people made, so that other claims
// can have them. The manager empties NFS volumes itself, and hostPath volumes through the node
// agent and a NodeRecycling. It decides from live reads, and again after the directory has
// the name of this process's token. A volume that cannot be emptied becomes Failed.
package recycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wrap"
)

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
	if held, err := uses.Claimed(ctx, r.live, r.claims, current); held || err != nil {
		return ctrl.Result{}, err
	}
	if why := r.whyNotRecyclable(current); why != "" {
		return ctrl.Result{}, r.fail(ctx, current, why)
	}
	if err := r.checkUnused(ctx, current); err != nil {
		return r.retryOrFail(ctx, current, err)
	}
	if pathOnNode(current) != "" {
		return r.recycleOnNode(ctx, current)
	}
	if err := r.ensureToken(ctx, current); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.empty(ctx, current); err != nil {
		return r.retryOrFail(ctx, current, err)
	}
	return ctrl.Result{}, r.free(ctx, current)
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
