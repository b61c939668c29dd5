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
	pod, err := podclaims.FindLive(ctx, r.Live, r.NodeName, uid, cached)
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
	return reconcile.Result{}, r.finishDeletion(ctx, pod)
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
	settled := true
	for looks := 0; settled && looks <= looksAgain; looks++ {
		again, problems, settled = r.remove(ctx, uid)
	}
	return again, problems
}

// remove takes one look at what is left of a pod, and removes it as far as it can by now. If settled,
// it is to look again.
func (r *remover) remove(ctx context.Context, uid types.UID) (again time.Duration, problems []error, settled bool) {
	// Before the directories are listed: a mount that still runs is about to make one.
	running := r.operations.View(uid)
	defer running.Close()
	found, err := r.Tree.Volumes(uid)
	if err != nil {
		return 0, []error{err}, false
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
		return podstatus.Soonest(states), problems, running.Settle(ctx)
	}
	if running.IsRunning() {
		return slowOperation, nil, false
	}
	if err := r.Tree.RemovePod(uid); err != nil {
		return 0, []error{err}, false
	}
	return 0, nil, false
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
// server. A pod that was created again under the same name has another UID, and stays.
func (r *remover) finishDeletion(ctx context.Context, pod *corev1.Pod) error {
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
