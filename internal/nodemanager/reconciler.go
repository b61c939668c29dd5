package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Reconciler brings the volumes of one pod to where they should be. Its key is
// the pod's UID, because directories are named by it: a pod that was created
// again under its old name is another one.
type Reconciler struct {
	Options
	resolver   resolve.Resolver
	desired    Desired
	operations *operations.Operations
	troubles   podstatus.Problems
	inUse      *inuse.InUse
	losses     poddir.Losses
	// longWaits are the events about waiting that pods have.
	longWaits event.Once[types.UID]
	// holding lets one pod at a time be given a volume that is for one alone.
	holding sync.Mutex
}

// NewReconciler returns the reconciler of a node's pods.
func NewReconciler(options Options) *Reconciler {
	return &Reconciler{
		Options:    options,
		resolver:   resolve.Resolver{Node: options.NodeName, Cached: options.Client, Live: options.Live, Types: options.Volumes, Devices: options.Devices},
		operations: operations.New(options.Clock, options.Numbers),
		inUse:      inuse.New(inuse.Options{NodeName: options.NodeName, Disks: options.Disks, Client: options.Client, Live: options.Live}),
	}
}

// The Node authorizer allows a node all that this needs; there is nothing for
// RBAC to add.

// Reconcile mounts what the pod needs, or takes away what it needs no more.
func (r *Reconciler) Reconcile(ctx context.Context, uid types.UID) (reconcile.Result, error) {
	pod, err := r.findPod(ctx, uid)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod != nil && podclaims.NeedsVolumes(pod) {
		return r.publish(ctx, pod)
	}
	r.desired.Forget(uid)
	r.longWaits.Forget(uid)
	r.losses.Forget(uid)
	r.forgetObjects(uid)
	return r.teardown(ctx, uid, pod)
}

// findPod looks for a pod in the cache; nil if it isn't there.
func (r *Reconciler) findPod(ctx context.Context, uid types.UID) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.MatchingFields{PodUIDIndex: string(uid)}); err != nil {
		return nil, fmt.Errorf("looking for pod %s in the cache: %w", uid, err)
	}
	if len(pods.Items) == 0 {
		return nil, nil
	}
	return &pods.Items[0], nil
}

// publish brings each volume of the pod one step further and says how far they are.
func (r *Reconciler) publish(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	began := r.losses.Begin()
	table, err := r.Mounter.Table()
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := r.desired.Want(pod)
	// All before the first is advanced, so that the disks among them are told of at once.
	for _, volume := range wanted.Volumes {
		volume.Unresolved = r.ensureResolved(ctx, pod, volume)
	}
	attachments := r.want(pod, wanted)
	r.lookAtContents(ctx, pod, wanted)
	states := make([]podstatus.Progress, 0, len(wanted.Volumes))
	for _, volume := range wanted.Volumes {
		at := r.ensureSubPaths(ctx, pod, volume, table, r.advance(ctx, pod, volume, table, attachments))
		at.Name = volume.Volume.Name
		states = append(states, at)
	}
	if err := r.ensureDescribed(pod, wanted, states); err != nil {
		return reconcile.Result{}, err
	}
	r.Numbers.SetPod(pod, r.numbersOf(pod, table, wanted, states))
	if condition, ok := podstatus.ConditionOf(states); ok {
		r.tellLongWait(pod, wanted, condition)
		if err := r.ensureCondition(ctx, pod, wanted, condition, states); err != nil {
			return reconcile.Result{}, err
		}
	}
	if r.losses.Note(began, pod.UID, r.Tree.Mounted(table, pod.UID)) {
		return reconcile.Result{RequeueAfter: podstatus.FirstClaimWait}, nil
	}
	return reconcile.Result{RequeueAfter: podstatus.Soonest(states)}, nil
}

// advance brings one volume a step further. Each step first looks whether it is
// done already, so that a new process continues where the last one died.
func (r *Reconciler) advance(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume, table mount.Table, disks *attachments) podstatus.Progress {
	if volume.Unresolved != nil {
		return podstatus.Progress{Err: volume.Unresolved, Again: volume.againAfter(volume.Unresolved, podstatus.ClaimWait(volume.Waits))}
	}
	// The operation runs on when this pass is over: it has its own copy.
	resolved := volume.Resolved
	dir := r.Tree.VolumeDir(pod.UID, resolved.Location())
	published, err := resolved.Plugin.IsPublished(table, resolved.Spec, dir)
	isGone := errors.Is(err, volumes.ErrGone)
	switch {
	case isGone:
		// It is attached anew, if at all. A mount that runs has the old one.
		again := *resolved
		again.Attachment = nil
		volume.Resolved = &again
		return podstatus.OrGone(err, r.mount(ctx, pod, volume, dir, disks))
	case err != nil:
		return podstatus.Progress{Err: err, Again: podstatus.LastClaimWait}
	case published:
		return r.follow(ctx, pod, volume, dir)
	}
	return r.mount(ctx, pod, volume, dir, disks)
}

// mount mounts a volume, once it is attached and it is known what it shows.
func (r *Reconciler) mount(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume, dir string, disks *attachments) podstatus.Progress {
	resolved := volume.Resolved
	err := disks.await(ctx, resolved)
	if err == nil {
		err = volume.Shown.err
	}
	if err != nil {
		volume.Waits++
		return podstatus.Progress{Err: err, Again: podstatus.ClaimWait(volume.Waits)}
	}
	volume.Waits = 0
	task := operations.Task{Kind: operations.Mounting, Type: resolved.Plugin.Name(), Dir: dir, Pod: pod.UID}
	outcome := r.operations.Do(ctx, task, func(ctx context.Context) error {
		if err := r.Tree.EnsureParent(pod.UID, resolved.Location()); err != nil {
			return err
		}
		return volume.Shown.by(resolved.Files, func() error { return resolved.Plugin.Publish(ctx, resolved.Spec, dir) })
	})
	if outcome.Err != nil {
		// The claim may be bound to another volume by the time of the next attempt, and
		// the volume be attached anew.
		volume.Resolved = nil
	}
	at := progressOf(outcome)
	at.Again = volume.againAfter(outcome.Err, at.Again)
	return at
}

// ensureResolved finds out what the volume is, once.
func (r *Reconciler) ensureResolved(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume) error {
	if volume.Resolved != nil {
		return nil
	}
	resolved, err := r.resolver.Resolve(ctx, pod, volume.Volume)
	if err == nil {
		err = r.checkFirst(pod, resolved)
	}
	if err == nil {
		err = r.ensureHeld(ctx, pod, resolved)
	}
	if err != nil {
		volume.Waits++
		return err
	}
	volume.Resolved, volume.Waits = resolved, 0
	return nil
}

// checkFirst refuses a volume that may not be mounted for the first time. The
// directory, which outlives this process, tells whether it was mounted before.
func (r *Reconciler) checkFirst(pod *corev1.Pod, resolved *resolve.ResolvedVolume) error {
	if resolved.Refused == nil {
		return nil
	}
	began, err := r.Tree.HasVolume(pod.UID, resolved.Location())
	if err != nil || began {
		return err
	}
	return resolved.Refused
}

// progressOf is how far a volume is whose operation was asked for.
func progressOf(outcome operations.Outcome) podstatus.Progress {
	switch {
	case outcome.Err != nil:
		return podstatus.Progress{Err: outcome.Err, Again: outcome.RetryAfter}
	case outcome.QueuedFor >= slowOperation:
		return podstatus.Progress{Err: resolve.WaitFor("waiting for its turn: many volumes of its type are being mounted or unmounted"), Again: slowOperation}
	case outcome.RunningFor >= slowOperation:
		return podstatus.Progress{Err: resolve.WaitFor("mounting takes long: does the storage answer?"), Again: slowOperation}
	default:
		return podstatus.Progress{Again: slowOperation}
	}
}
