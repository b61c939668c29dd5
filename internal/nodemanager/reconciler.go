package nodemanager

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/reservation"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// looksAgain is how often a pass looks again after operations that it began have ended: volumes
	// first, and then their parts.
	looksAgain = 2
	// concurrentPublishes is how many pods are published at once. Each has what is read for its volumes in memory.
	concurrentPublishes = 32
)

// Reconciler brings the volumes of one pod to their desired state. Its key is the pod's UID,
// because directories are named by it: a pod that was created again under the same name is
// another pod.
type Reconciler struct {
	Options
	resolver     resolve.Resolver
	desired      Desired
	operations   *operations.Operations
	inUse        *inuse.InUse
	losses       poddir.Losses
	reports      *reporter
	reservations *reservation.Reservations
	disks        *disks
	projections  *projections
	subPaths     *subPaths
	remover      *remover
	// publishing has an element for each pass over a pod that publishes.
	publishing chan struct{}
}

// NewReconciler returns the reconciler of a node's pods.
func NewReconciler(options Options) *Reconciler {
	running := operations.New(options.Clock, options.Numbers)
	reports := &reporter{client: options.Client, events: options.Events, clock: options.Clock}
	inUse := inuse.New(inuse.Options{NodeName: options.NodeName, Disks: options.Disks, Client: options.Client, Live: options.Live})
	parts := &subPaths{tree: options.Tree, mounter: options.Mounter, objects: options.Objects, operations: running}
	return &Reconciler{
		Options:      options,
		resolver:     resolve.Resolver{Node: options.NodeName, Cached: options.Client, Live: options.Live, Types: options.Volumes, Devices: options.Devices},
		operations:   running,
		inUse:        inUse,
		reports:      reports,
		reservations: reservation.New(options.Tree, options.Client),
		disks:        &disks{nodeName: options.NodeName, served: options.Disks, live: options.Live, tree: options.Tree, inUse: inUse, operations: running},
		projections:  &projections{objects: options.Objects, operations: running, reports: reports, clock: options.Clock},
		subPaths:     parts,
		publishing:   make(chan struct{}, concurrentPublishes),
		remover: &remover{
			Options: &options, live: podclaims.NewLive(options.Live, options.NodeName), operations: running, inUse: inUse, subPaths: parts, reports: reports,
		},
	}
}

// The Node authorizer allows a node all that this needs: there are no RBAC markers.

// Reconcile mounts the volumes that the pod needs, or unmounts those that it needs no more.
func (r *Reconciler) Reconcile(ctx context.Context, uid types.UID) (reconcile.Result, error) {
	pod, err := podclaims.Find(ctx, r.Client, uid)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod != nil && podclaims.NeedsVolumes(pod) {
		return r.publishInTurn(ctx, pod)
	}
	r.desired.Forget(uid)
	r.reports.longWaits.Forget(uid)
	r.losses.Forget(uid)
	if r.Objects != nil {
		r.Objects.Forget(uid)
	}
	return r.remover.teardown(ctx, uid, pod)
}

// publishInTurn publishes a pod once fewer than concurrentPublishes are being published.
func (r *Reconciler) publishInTurn(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	select {
	case r.publishing <- struct{}{}:
		defer func() { <-r.publishing }()
		return r.publish(ctx, pod)
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
}

// publish brings each volume of the pod further, and reports the pod's progress.
func (r *Reconciler) publish(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	at := &pass{pod: pod, desired: r.desired.Want(pod)}
	at.states = make([]podstatus.Progress, len(at.desired.Volumes))
	// All volumes before the first is mounted, so that one write reports all disks as in use.
	for _, volume := range at.desired.Volumes {
		volume.Unresolved = r.ensureResolved(ctx, pod, volume)
	}
	attachments := r.disks.want(ctx, at)
	r.projections.read(ctx, at)
	defer func() { at.operations.Close() }()
	for looks := 0; looks == 0 || looks <= looksAgain && at.operations.Settle(ctx); looks++ {
		if err := r.look(at); err != nil {
			return reconcile.Result{}, err
		}
		r.advanceAll(ctx, at, attachments)
		// Before the wait: no container starts without a volume that is being mounted.
		if err := ensureDescribed(r.Tree, at); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.Numbers.SetPod(pod, metricsOf(r.Tree, at))
	if err := r.reports.ensureCondition(ctx, at); err != nil {
		return reconcile.Result{}, err
	}
	if r.losses.Record(at.comparisons, pod.UID, r.Tree.Mounted(at.table, pod.UID)) {
		return reconcile.Result{RequeueAfter: podstatus.FirstClaimWait}, nil
	}
	return reconcile.Result{RequeueAfter: podstatus.Soonest(at.states)}, nil
}

// look reads what runs, and what is mounted.
func (r *Reconciler) look(at *pass) (err error) {
	at.comparisons = r.losses.Begin()
	// Operations first: the table may be older than the end of one that ran.
	at.operations = r.operations.View(at.pod.UID)
	at.table, err = r.Mounter.Table()
	return err
}

// advanceAll brings each volume a step further that hasn't failed in this pass. What was mounted at an
// earlier look may be lost by now, and a disk that was gone may be back.
func (r *Reconciler) advanceAll(ctx context.Context, at *pass, disks *attachments) {
	for i, volume := range at.desired.Volumes {
		if err := at.states[i].Err; err != nil && !errors.Is(err, volumes.ErrGone) {
			continue
		}
		at.states[i] = r.subPaths.ensureMounted(ctx, at, volume, r.advance(ctx, at, volume, disks))
		at.states[i].Name = volume.Volume.Name
	}
}

// advance brings one volume a step further. Each step first checks whether it is done, so that
// a restarted agent continues after the last step.
func (r *Reconciler) advance(ctx context.Context, at *pass, volume *DesiredVolume, disks *attachments) podstatus.Progress {
	if volume.Unresolved != nil {
		return podstatus.Progress{Err: volume.Unresolved, Again: volume.retryAfter(volume.Unresolved, podstatus.ClaimWait(volume.Waits))}
	}
	resolved := volume.Resolved
	dir := r.Tree.VolumeDir(at.pod.UID, resolved.Location())
	published, err := resolved.Plugin.IsPublished(at.table, resolved.Spec, dir)
	switch {
	case errors.Is(err, volumes.ErrGone):
		// It needs a new attachment. A copy: a running mount has the old one.
		again := *resolved
		again.Attachment = nil
		volume.Resolved = &again
		return podstatus.OrGone(err, r.mount(ctx, at, volume, dir, disks))
	case err != nil:
		return podstatus.Progress{Err: err, Again: podstatus.LastClaimWait}
	case published:
		return r.projections.refresh(ctx, at, volume, dir)
	}
	return r.mount(ctx, at, volume, dir, disks)
}

// mount mounts a volume, once it is attached and its content was read.
func (r *Reconciler) mount(ctx context.Context, at *pass, volume *DesiredVolume, dir string, disks *attachments) podstatus.Progress {
	// The operation outlasts this pass: it has its own reference.
	resolved := volume.Resolved
	err := resolved.AwaitDriver(dir)
	if err == nil {
		err = disks.await(ctx, resolved)
	}
	if err == nil {
		err = volume.Projected.err
	}
	if err != nil {
		return volume.failed(err)
	}
	volume.Waits = 0
	task := operations.Task{Kind: operations.Mounting, Type: volumes.QueueOf(resolved.Plugin, resolved.Spec, dir), Dir: dir, Pod: at.pod.UID}
	task.About = effect.AboutVolume(at.pod, resolved.PersistentVolume, volume.Volume.Name)
	outcome := at.operations.Do(ctx, task, func(ctx context.Context) error {
		if err := r.Tree.EnsureParent(task.Pod, resolved.Location()); err != nil {
			return err
		}
		return volume.Projected.written.Write(resolved.Files, func() error { return resolved.Plugin.Publish(ctx, resolved.Spec, dir) })
	})
	if outcome.Err != nil {
		// By the next attempt, the claim may be bound to another volume, or the volume attached again.
		volume.Resolved = nil
	}
	state := progressOf(outcome)
	state.Again = volume.retryAfter(outcome.Err, state.Again)
	return state
}

// ensureResolved finds the volume object and the type of a volume, once.
func (r *Reconciler) ensureResolved(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume) error {
	if volume.Resolved != nil {
		return nil
	}
	resolved, err := r.resolver.Resolve(ctx, pod, volume.Volume)
	if err == nil {
		err = r.checkFirst(pod, resolved)
	}
	if err == nil {
		err = r.reservations.Ensure(ctx, pod, resolved)
	}
	if err != nil {
		volume.Waits++
		return err
	}
	volume.Resolved, volume.Waits = resolved, 0
	return nil
}

// checkFirst refuses the first mount of a refused volume. The volume's directory, which
// survives a restart, shows that it was mounted before.
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
