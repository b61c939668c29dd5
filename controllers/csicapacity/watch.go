package csicapacity

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	k8sevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
)

// settles is how long changes of nodes are collected: one pass is for many nodes.
const settles = time.Second

// exceptUpdates passes objects that are created or deleted. An update is Stowage's own, or the next
// refresh corrects it.
var exceptUpdates = predicate.Funcs{UpdateFunc: func(k8sevent.UpdateEvent) bool { return false }}

// onlyNewDrivers passes nodes on which drivers are registered, or are not any more.
var onlyNewDrivers = predicate.Funcs{UpdateFunc: func(e k8sevent.UpdateEvent) bool {
	return !equality.Semantic.DeepEqual(e.ObjectOld.(*storagev1.CSINode).Spec, e.ObjectNew.(*storagev1.CSINode).Spec)
}}

// madeOrRemoved passes volumes that are created or deleted, but not those that were there before.
var madeOrRemoved = predicate.Funcs{
	CreateFunc: wake.NotAtStart.CreateFunc,
	UpdateFunc: func(k8sevent.UpdateEvent) bool { return false },
}

// refused passes claims that their node can't have, for want of room as a rule: the scheduler has to
// choose another.
var refused = predicate.Funcs{
	CreateFunc: func(k8sevent.CreateEvent) bool { return false },
	DeleteFunc: func(k8sevent.DeleteEvent) bool { return false },
	UpdateFunc: func(e k8sevent.UpdateEvent) bool {
		after := e.ObjectNew.(*corev1.PersistentVolumeClaim)
		return e.ObjectOld.GetAnnotations()[volume.AnnSelectedNode] != "" && after.Annotations[volume.AnnSelectedNode] == "" && after.Spec.VolumeName == ""
	},
}

// driverRequest returns the request for a driver that may be served.
func driverRequest(driver string) []reconcile.Request {
	if len(driver) > validation.DNS1123LabelMaxLength || len(validation.IsDNS1123Subdomain(driver)) > 0 {
		return nil
	}
	return []reconcile.Request{wake.RequestNamed(driver)}
}

func driverOfClass(_ context.Context, object client.Object) []reconcile.Request {
	return driverRequest(object.(*storagev1.StorageClass).Provisioner)
}

func driverNamed(_ context.Context, object client.Object) []reconcile.Request {
	return driverRequest(object.GetName())
}

func driverOfCapacity(_ context.Context, object client.Object) []reconcile.Request {
	return driverRequest(ownDriver(object))
}

// driversOf wakes all drivers that are served: their topologies are those of nodes.
func driversOf(cache client.Reader) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		objects := &stowagev1alpha1.StorageBackendList{}
		if err := cache.List(ctx, objects, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing backends")
		}
		var requests []reconcile.Request
		for i := range objects.Items {
			if objects.Items[i].Spec.CSI != nil {
				requests = append(requests, wake.Request(&objects.Items[i]))
			}
		}
		return requests
	}
}

// watches finds the objects that a change wakes.
type watches struct {
	client client.Reader
	// namespace is where capacities are published.
	namespace string
}

// ofVolume wakes the objects with the room that a volume took or freed: of its driver, and where it can be
// reached. Another class may take from the same room.
func (r watches) ofVolume(ctx context.Context, object client.Object) []reconcile.Request {
	pv := object.(*corev1.PersistentVolume)
	if pv.Spec.CSI == nil {
		return nil
	}
	return r.capacities(ctx, pv.Spec.CSI.Driver, func(of *storagev1.CSIStorageCapacity) bool { return reaches(pv, of) })
}

// reaches reports whether a volume can be reached from where an object is about.
func reaches(pv *corev1.PersistentVolume, of *storagev1.CSIStorageCapacity) bool {
	if of.NodeTopology == nil {
		return true
	}
	return volume.CheckNodeAffinity(pv, of.NodeTopology.MatchLabels) == nil || len(of.NodeTopology.MatchLabels) == 0
}

// ofClaim wakes the objects of a claim's class.
func (r watches) ofClaim(ctx context.Context, object client.Object) []reconcile.Request {
	class := storageclass.Of(object.(*corev1.PersistentVolumeClaim))
	return r.capacities(ctx, "", func(of *storagev1.CSIStorageCapacity) bool { return of.StorageClassName == class })
}

// capacities wakes objects that are Stowage's: of one driver, or of all.
func (r watches) capacities(ctx context.Context, driver string, is func(*storagev1.CSIStorageCapacity) bool) []reconcile.Request {
	own := labels.Set{ManagedByLabel: manager}
	if driver != "" {
		own[DriverLabel] = driver
	}
	published := &storagev1.CSIStorageCapacityList{}
	selected := client.MatchingLabelsSelector{Selector: own.AsSelectorPreValidated()}
	if err := r.client.List(ctx, published, client.InNamespace(r.namespace), selected, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing capacities")
	}
	var requests []reconcile.Request
	for i := range published.Items {
		if of := &published.Items[i]; is(of) {
			requests = append(requests, wake.Request(of))
		}
	}
	return requests
}
