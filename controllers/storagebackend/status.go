package storagebackend

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
	"github.com/stowage-dev/stowage/internal/message"
)

const (
	mebi = 1 << 20
	// probeInterval is how often a backend is probed, and a deleted one is checked for users.
	probeInterval = time.Minute
	// probeTimeout is how long storage has to answer.
	probeTimeout = 20 * time.Second
)

func probe(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend) {
	prober, can := backend.As[backend.Prober](opened)
	if !can {
		setOutcome(object, stowagev1alpha1.ReachableCondition, nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	setOutcome(object, stowagev1alpha1.ReachableCondition, prober.Probe(ctx))
}

// reportCapacity sets the backend's capacity, if the backend can report it. While the storage
// does not answer, the last value stays. Of disks on nodes, the existing ones count.
func reportCapacity(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend, metrics *metrics.Metrics) {
	reporter, can := backend.As[backend.CapacityReporter](opened)
	if !can {
		object.Status.Capacity = nil
		return
	}
	if object.Spec.Local == nil && !meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReachableCondition) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	space, err := reporter.Space(ctx)
	if err != nil {
		return
	}
	object.Status.Capacity = &stowagev1alpha1.BackendCapacity{Total: rounded(space.Total), Used: rounded(space.Used)}
	if metrics != nil {
		metrics.Filled(object.Name, space)
	}
}

// rounded returns a quantity in whole MiB: people read it, and a few bytes are no reason for a
// write. It rounds down, because a total that is rounded up would exceed the space.
func rounded(quantity resource.Quantity) *resource.Quantity {
	return resource.NewQuantity(quantity.Value()/mebi*mebi, resource.BinarySI)
}

// setOutcome turns the outcome of a check into a condition.
func setOutcome(object *stowagev1alpha1.StorageBackend, condition string, err error) {
	if err == nil {
		setCondition(object, condition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "")
		return
	}
	reason := stowagev1alpha1.ReasonUnavailable
	if errors.Is(err, backend.Invalid) {
		reason = stowagev1alpha1.ReasonInvalid
	}
	setCondition(object, condition, metav1.ConditionFalse, reason, err.Error())
}

// setReady combines the named conditions: the first that is not True decides.
func setReady(object *stowagev1alpha1.StorageBackend) {
	for _, name := range []string{
		stowagev1alpha1.AcceptedCondition, stowagev1alpha1.ReachableCondition, stowagev1alpha1.StorageClassReadyCondition,
	} {
		if named := meta.FindStatusCondition(object.Status.Conditions, name); named != nil && named.Status != metav1.ConditionTrue {
			setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, named.Reason, named.Message)
			return
		}
	}
	setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "volumes can be provisioned")
}

func setCondition(object *stowagev1alpha1.StorageBackend, name string, status metav1.ConditionStatus, reason, text string) {
	meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: object.Generation,
	})
}
