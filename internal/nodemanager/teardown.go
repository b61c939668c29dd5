package nodemanager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// teardown takes a pod's volumes away, then its directory, and then finishes its
// deletion. The cached pod is nil if it isn't in the cache.
func (r *Reconciler) teardown(ctx context.Context, uid types.UID, cached *corev1.Pod) (reconcile.Result, error) {
	// Asked first: a mount that was begun is about to make a directory, and none is
	// begun from here on.
	running := r.operations.IsRunning(uid)
	hasDir, err := r.Tree.HasPod(uid)
	if err != nil {
		return reconcile.Result{}, err
	}
	deleting := cached != nil && cached.DeletionTimestamp != nil
	if !running && !hasDir && !deleting {
		r.forget(uid)
		return reconcile.Result{}, nil
	}
	// The cache may be older than the pod, or the pod than its last word. An error
	// here, such as an API server that is down, leaves everything as it is.
	pod, err := r.livePod(ctx, uid, cached)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod != nil && podclaims.NeedsVolumes(pod) {
		return reconcile.Result{RequeueAfter: podstatus.FirstClaimWait}, nil
	}
	again, problems := r.ensureGone(ctx, uid)
	if len(problems) > 0 {
		wait := r.tellTroubles(ctx, uid, pod, problems)
		return reconcile.Result{RequeueAfter: cmp.Or(again, wait)}, nil
	}
	if again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	r.forget(uid)
	return reconcile.Result{}, r.finishDeletion(ctx, pod)
}

// forget drops what is known of a pod of which nothing is left.
func (r *Reconciler) forget(uid types.UID) {
	r.operations.Forget(uid)
	r.troubles.Forget(uid)
	r.inUse.Forget(uid)
	r.Numbers.ForgetPod(uid)
}

// tellTroubles tells what is new of what keeps a pod, which is nil if it is gone
// from the API server, and returns how long to wait.
func (r *Reconciler) tellTroubles(ctx context.Context, uid types.UID, pod *corev1.Pod, problems []error) time.Duration {
	again, news := r.troubles.Note(uid, problems)
	if news == nil {
		return again
	}
	if pod != nil {
		r.tell(pod, podstatus.UnmountFailed(news))
	}
	logf.FromContext(ctx).Error(news, "tearing down a pod's volumes", "podUID", uid)
	return again
}

// livePod reads a pod from the API server; nil if it is gone. The list is for pods that a
// node may not get: those that don't exist, and those that it isn't known to run.
func (r *Reconciler) livePod(ctx context.Context, uid types.UID, cached *corev1.Pod) (*corev1.Pod, error) {
	fields := client.MatchingFields{"spec.nodeName": r.NodeName}
	options := []client.ListOption{fields}
	if cached != nil {
		pod := &corev1.Pod{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), pod)
		switch {
		case err == nil && pod.UID == uid:
			return pod, nil
		case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading pod %s before its volumes are taken away: %w", uid, err)
		}
		fields["metadata.name"] = cached.Name
		options = append(options, client.InNamespace(cached.Namespace))
	}
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, options...); err != nil {
		return nil, fmt.Errorf("reading pod %s before its volumes are taken away: %w", uid, err)
	}
	for i := range pods.Items {
		if pods.Items[i].UID == uid {
			return &pods.Items[i], nil
		}
	}
	return nil, nil
}

// ensureGone takes away the pod's volumes and then its directory; all volumes are
// worked on, whatever becomes of one of them. A time above zero says when there may
// be something new of those that are worked on.
func (r *Reconciler) ensureGone(ctx context.Context, uid types.UID) (again time.Duration, problems []error) {
	r.operations.Cancel(uid)
	// Asked first: a mount that isn't over yet is about to make a directory.
	running := r.operations.IsRunning(uid)
	found, err := r.Tree.Volumes(uid)
	if err != nil {
		return 0, []error{err}
	}
	r.Numbers.SetLeft(uid, found)
	states, problems := r.ensurePartsGone(ctx, uid, found)
	if err := r.Tree.RemoveContainers(uid); err != nil {
		problems = append(problems, err)
	}
	for _, at := range found {
		if r.hasParts(uid, at.Name) {
			states = append(states, podstatus.Progress{Again: slowOperation})
			continue
		}
		plugin, known := r.findType(at)
		dir := r.Tree.VolumeDir(uid, at)
		if !known {
			problems = append(problems, fmt.Errorf("volume %s has the unknown type %s: remove %s by hand", at.Name, at.Plugin, dir))
			continue
		}
		task := operations.Task{Kind: operations.Unmounting, Type: at.Plugin, Dir: dir, Pod: uid}
		outcome := r.operations.Do(ctx, task, func(ctx context.Context) error { return plugin.Unpublish(ctx, dir) })
		if outcome.Err != nil {
			problems = append(problems, fmt.Errorf("volume %s: %w", at.Name, outcome.Err))
		}
		states = append(states, progressOf(outcome))
	}
	if len(states) > 0 || len(problems) > 0 {
		return podstatus.Soonest(states), problems
	}
	if running {
		return slowOperation, nil
	}
	if err := r.Tree.RemovePod(uid); err != nil {
		return 0, []error{err}
	}
	return 0, nil
}

// findType finds the type of a volume that has a directory.
func (r *Reconciler) findType(at poddir.Location) (volumes.Plugin, bool) {
	if at.Block {
		return r.Devices.Named(at.Plugin)
	}
	return r.Volumes.Named(at.Plugin)
}

// finishDeletion removes a pod that is being deleted, and of which nothing is
// left on the node, from the API server. A pod that was created again under the
// same name has another UID, and stays.
func (r *Reconciler) finishDeletion(ctx context.Context, pod *corev1.Pod) error {
	if pod == nil || pod.DeletionTimestamp == nil {
		return nil
	}
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil && *seconds == 0 && len(pod.Finalizers) > 0 {
		return nil
	}
	err := r.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("finishing the deletion of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return nil
}
