// Package ephemeral makes the claims of pods' generic ephemeral volumes, in scope=cluster
// instead of kube-controller-manager. The pod owns its claim, so the garbage collector removes
// it. It never takes over an existing claim of the same name.
package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/storage/ephemeral"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	stowageevent "github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Reconciler makes the claims of pods' generic ephemeral volumes, and deletes them when their
// pod is gone. It runs in scope=cluster only: elsewhere kube-controller-manager makes them and
// its garbage collector deletes them.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	events   events.EventRecorder
	recorded stowageevent.Last
}

// errForeignClaim means that a claim has the name of a pod's claim, and is not the pod's.
var errForeignClaim = errors.New("which exists and is not this pod's: rename the volume, or delete that claim")

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{client: deps.Client, live: deps.Live, events: deps.Events}
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;delete

// Reconcile makes the claims of one pod's ephemeral volumes. The pod needs no node yet: the
// scheduler waits for its claims.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, request.NamespacedName, pod)
	switch {
	case apierrors.IsNotFound(err):
		r.recorded.Forget(request.NamespacedName)
		return ctrl.Result{}, r.removeClaims(ctx, request.NamespacedName)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading pod %s: %w", request.NamespacedName, err)
	case !pod.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.ensureClaims(ctx, pod)
}

// ensureClaims makes the missing claims, and records one event about those that cannot be
// made. It retries if something other than a change of the pod may help.
func (r *Reconciler) ensureClaims(ctx context.Context, pod *corev1.Pod) error {
	var refused, failed []error
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Ephemeral == nil {
			continue
		}
		err := r.ensureClaim(ctx, pod, &pod.Spec.Volumes[i])
		refused = append(refused, err)
		if !errors.Is(err, errForeignClaim) {
			failed = append(failed, err)
		}
	}
	why := errors.Join(refused...)
	if why != nil && r.recorded.IsNew(client.ObjectKeyFromObject(pod), string(pod.UID)+why.Error()) {
		r.events.Eventf(pod, nil, corev1.EventTypeWarning, stowageevent.FailedBinding, "CreateClaim", "%v", why)
	}
	return errors.Join(failed...)
}

// ensureClaim makes one volume's claim, owned by the pod. A claim of that name that is not the
// pod's is never used: its data belongs to another user.
func (r *Reconciler) ensureClaim(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) error {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, volume)}
	err := r.client.Get(ctx, key, claim)
	switch {
	case err == nil && ephemeral.VolumeIsForPod(pod, claim) != nil:
		return fmt.Errorf("volume %s needs a claim named %s, %w", volume.Name, key.Name, errForeignClaim)
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading claim %s: %w", key, err)
	}
	template := volume.Ephemeral.VolumeClaimTemplate
	claim = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: template.Spec,
	}
	if err := r.client.Create(ctx, claim); err != nil {
		return wrap.Error(client.IgnoreAlreadyExists(err), "creating claim %s for pod %s", key, pod.Name)
	}
	effect.Log(ctx, effect.ClaimCreated, pod.CreationTimestamp.Time, claim, pod)
	return nil
}

// removeClaims deletes the claims of a deleted pod, for clusters without a garbage collector.
// A stale cache could miss the pod, so a live read confirms the deletion.
func (r *Reconciler) removeClaims(ctx context.Context, name client.ObjectKey) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, client.InNamespace(name.Namespace), client.MatchingFields{index.ClaimsByPod: name.Name}); err != nil {
		return fmt.Errorf("listing the claims of pod %s: %w", name, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		pod := &corev1.Pod{}
		err := r.live.Get(ctx, name, pod)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading pod %s: %w", name, err)
		case err == nil && metav1.IsControlledBy(claim, pod), !claim.DeletionTimestamp.IsZero():
			continue
		}
		if err := r.client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting claim %s/%s of pod %s, which is gone: %w", claim.Namespace, claim.Name, name.Name, err)
		}
	}
	return nil
}

// SetupWithManager watches the creation and deletion of pods; their volumes do not change. It
// also watches claims with the names that pods need, whatever their owner.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	comeAndGo := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	return ctrl.NewControllerManagedBy(mgr).
		Named("pod").
		For(&corev1.Pod{}, builder.WithPredicates(comeAndGo)).
		Owns(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.podsOfClaim), builder.WithPredicates(comeAndGo, wake.NotAtStart)).
		Complete(effect.Reported[ctrl.Request](r))
}

// podsOfClaim returns the pods with an ephemeral volume of this claim name.
func (r *Reconciler) podsOfClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(claim.GetNamespace()), client.MatchingFields{index.PodsByClaim: claim.GetName()},
		wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "claim", client.ObjectKeyFromObject(claim))
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		pod := &pods.Items[i]
		if slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Ephemeral != nil }) {
			requests = append(requests, wake.Request(pod))
		}
	}
	return requests
}
