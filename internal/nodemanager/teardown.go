package nodemanager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// remover unmounts the volumes of pods that don't need them any more.
type remover struct {
	*Options
	live       *podclaims.Live
	operations *operations.Operations
	inUse      *inuse.InUse
	subPaths   *subPaths
	reports    *reporter
	problems   podstatus.Problems
}

// teardown unmounts a pod's volumes, removes its directory, and then finishes its deletion.
// cached is nil if the pod isn't in the cache.
func (r *remover) teardown(ctx context.Context, uid types.UID, cached *corev1.Pod) (reconcile.Result, error) {
	// Operations first: a running mount is about to make a directory, and no new one begins.
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
	// The cache may be behind the pod. An error here, as when the API server is down, leaves
	// everything as it is.
	pod, err := r.live.Find(ctx, uid, cached)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod != nil && podclaims.NeedsVolumes(pod) {
		return reconcile.Result{RequeueAfter: podstatus.FirstClaimWait}, nil
	}
	again, problems := r.ensureGone(ctx, uid)
	if len(problems) > 0 {
		wait := r.reportProblems(ctx, uid, pod, problems)
		return reconcile.Result{RequeueAfter: cmp.Or(again, wait)}, nil
	}
	if again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	r.forget(uid)
	return r.finishDeletion(ctx, pod)
}

// forget drops the state of a pod of which nothing is left on the node.
func (r *remover) forget(uid types.UID) {
	r.operations.Forget(uid)
	r.problems.Forget(uid)
	r.inUse.Forget(uid)
	r.Numbers.ForgetPod(uid)
}

// reportProblems reports the new ones among a pod's problems, and returns how long to wait.
// The pod is nil if it is gone from the API server.
func (r *remover) reportProblems(ctx context.Context, uid types.UID, pod *corev1.Pod, problems []error) time.Duration {
	again, fresh := r.problems.Record(uid, problems)
	if fresh == nil {
		return again
	}
	if pod != nil {
		r.reports.record(pod, podstatus.UnmountFailed(fresh))
	}
	if pod != nil && pod.DeletionTimestamp != nil {
		if _, err := r.reports.setCondition(ctx, pod, podstatus.UnmountCondition(problems)); err != nil {
			logf.FromContext(ctx).Error(err, "reporting what keeps a pod", "podUID", uid)
		}
	}
	logf.FromContext(ctx).Error(fresh, "tearing down a pod's volumes", "podUID", uid)
	return again
}

// ensureGone unmounts the pod's volumes and then removes its directory. A volume that fails
// doesn't hold up the others. A time above zero is when to look at running work again.
func (r *remover) ensureGone(ctx context.Context, uid types.UID) (again time.Duration, problems []error) {
	r.operations.Cancel(uid)
	var running operations.View
	defer func() { running.Close() }()
	for looks := 0; looks == 0 || looks <= looksAgain && running.Settle(ctx); looks++ {
		// Before the directories are listed: a mount that still runs is about to make one.
		running = r.operations.View(uid)
		again, problems = r.remove(ctx, uid, running)
	}
	return again, problems
}

// remove takes one look at what is left of a pod, and removes what it can by now.
func (r *remover) remove(ctx context.Context, uid types.UID, running operations.View) (again time.Duration, problems []error) {
	found, err := r.Tree.Volumes(uid)
	if err != nil {
		return 0, []error{err}
	}
	r.Numbers.SetLeft(uid, found)
	states, problems := r.subPaths.ensureGone(ctx, uid, running, found, func(at poddir.Location) string { return r.queueOf(uid, at) })
	if err := r.Tree.RemoveContainers(uid); err != nil {
		problems = append(problems, err)
	}
	for _, at := range found {
		state, err := r.unpublish(ctx, uid, at, running)
		if err != nil {
			problems = append(problems, err)
		}
		states = append(states, state)
	}
	if len(states) > 0 || len(problems) > 0 {
		return podstatus.Soonest(states), problems
	}
	if running.IsRunning() {
		return slowOperation, nil
	}
	if err := r.Tree.RemovePod(uid); err != nil {
		return 0, []error{err}
	}
	return 0, nil
}

// unpublish unmounts one volume, once no part of it is mounted.
func (r *remover) unpublish(ctx context.Context, uid types.UID, at poddir.Location, running operations.View) (podstatus.Progress, error) {
	if r.subPaths.remain(uid, at.Name) {
		return podstatus.Progress{Again: slowOperation}, nil
	}
	plugin, known := r.findType(at)
	dir := r.Tree.VolumeDir(uid, at)
	if !known {
		return podstatus.Progress{}, fmt.Errorf("volume %s has the unknown type %s: remove %s by hand", at.Name, at.Plugin, dir)
	}
	if err := volumes.MissingOf(plugin, volumes.Spec{}, dir); err != nil {
		return podstatus.Progress{}, fmt.Errorf("volume %s waits for its CSI driver, which unmounts it: %w", at.Name, err)
	}
	task := operations.Task{Kind: operations.Unmounting, Type: r.queueOf(uid, at), Dir: dir, Pod: uid, About: []any{effect.Volume, at.Name, effect.Node, r.NodeName, effect.Pod, string(uid)}}
	outcome := running.Do(ctx, task, func(ctx context.Context) error { return plugin.Unpublish(ctx, dir) })
	if outcome.Err != nil {
		return progressOf(outcome), fmt.Errorf("volume %s: %w", at.Name, outcome.Err)
	}
	return progressOf(outcome), nil
}

// queueOf returns the queue for the operations of a volume that is known by its directory.
func (r *remover) queueOf(uid types.UID, at poddir.Location) string {
	plugin, known := r.findType(at)
	if !known {
		return at.Plugin
	}
	return volumes.QueueOf(plugin, volumes.Spec{}, r.Tree.VolumeDir(uid, at))
}

// findType finds the type of a volume by its directory.
func (r *remover) findType(at poddir.Location) (volumes.Plugin, bool) {
	if at.Block {
		return r.Devices.Named(at.Plugin)
	}
	return r.Volumes.Named(at.Plugin)
}

// finishDeletion deletes a terminating pod, of which nothing is left on the node, from the API
// server. A pod that was created again under the same name has another UID, and stays. A pod that
// changed since it was read may run a container by now: it is read again.
func (r *remover) finishDeletion(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	if pod == nil || pod.DeletionTimestamp == nil || len(pod.Finalizers) > 0 && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 {
		return reconcile.Result{}, nil
	}
	err := r.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: podstatus.FirstClaimWait}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("finishing the deletion of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return reconcile.Result{}, nil
}
