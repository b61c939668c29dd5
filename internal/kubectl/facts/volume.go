// Package facts says in words what objects of the API record about volumes and conditions. These
// are backend, node, size, health, and until when the data is kept. All of it is pure.
//
// The verbs of kubectl stowage call it.
package facts

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Driver is the CSI driver of a volume, or the provisioner that made it, or "".
func Driver(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI != nil {
		return pv.Spec.CSI.Driver
	}
	return pv.Annotations[storagehelpers.AnnDynamicallyProvisioned]
}

// IsOurs reports whether a volume has one of Stowage's drivers.
func IsOurs(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && backend.IsOurs(pv.Spec.CSI.Driver)
}

// Backend is the name of the StorageBackend that a volume of Stowage's drivers names; "" for volumes
// of other drivers.
func Backend(pv *corev1.PersistentVolume) string {
	if !IsOurs(pv) {
		return ""
	}
	return cmp.Or(pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute], pv.Labels[stowagev1alpha1.BackendLabel])
}

// Served has the CSI drivers that aren't Stowage's own, and have a StorageBackend. It has their name.
type Served map[string]bool

// ServedBy returns the drivers of StorageBackends.
func ServedBy(backends []stowagev1alpha1.StorageBackend) Served {
	served := Served{}
	for i := range backends {
		if IsCSI(&backends[i]) {
			served[backends[i].Name] = true
		}
	}
	return served
}

// IsCSI reports whether a StorageBackend is that of a CSI driver which isn't one of Stowage's own.
func IsCSI(object *stowagev1alpha1.StorageBackend) bool {
	return object.Spec.CSI != nil && object.Spec.CSI.Driver == object.Name
}

// Has reports whether Stowage serves the driver of a volume.
func (s Served) Has(pv *corev1.PersistentVolume) bool {
	return IsOurs(pv) || pv.Spec.CSI != nil && s[pv.Spec.CSI.Driver]
}

// Backend is the name of a volume's StorageBackend; "" for volumes of drivers that Stowage doesn't
// serve.
func (s Served) Backend(pv *corev1.PersistentVolume) string {
	if s.Has(pv) && !IsOurs(pv) {
		return pv.Spec.CSI.Driver
	}
	return Backend(pv)
}

// Handle is the id of a volume in its backend, or "".
func Handle(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil {
		return ""
	}
	return pv.Spec.CSI.VolumeHandle
}

// Node is the only node that can use a volume, as its affinity says, or "".
func Node(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	keys := []string{stowagev1alpha1.TopologyNodeLabel, corev1.LabelHostname}
	term := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
	for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
		if e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && slices.Contains(append(keys, metav1.ObjectNameField), e.Key) {
			return e.Values[0]
		}
	}
	return ""
}

// Claim is the namespace and name of the claim that a volume is tied to, or "".
func Claim(pv *corev1.PersistentVolume) string {
	if pv.Spec.ClaimRef == nil {
		return ""
	}
	return pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name
}

// Retention is how long the data of a volume without a claim is kept.
type Retention struct {
	// Until is the end of the undelete window. Nil: there is no window.
	Until *time.Time
	// Kept means that no time ends it: the reclaim policy is Retain.
	Kept bool
}

// String is the time, "kept", or "" for a volume to which no window applies.
func (r Retention) String() string {
	switch {
	case r.Kept:
		return "kept"
	case r.Until != nil:
		return r.Until.UTC().Format(time.RFC3339)
	default:
		return ""
	}
}

// Retained returns how long the data of a volume is kept: that of a Released volume, and that
// of a volume that a user deleted. The end of the window is the one that the manager wrote.
func Retained(pv *corev1.PersistentVolume) Retention {
	released := pv.Status.Phase == corev1.VolumeReleased
	if !released && (pv.DeletionTimestamp.IsZero() || pv.Status.Phase == corev1.VolumeBound) {
		return Retention{}
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return Retention{Kept: true}
	}
	if until, in := volume.UndeletableUntil(pv); in {
		return Retention{Until: &until}
	}
	return Retention{}
}

// Size is the capacity of a volume, or "".
func Size(pv *corev1.PersistentVolume) string {
	return Bytes(pointerTo(pv.Spec.Capacity, corev1.ResourceStorage))
}

func pointerTo(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	quantity, is := list[name]
	if !is {
		return nil
	}
	return &quantity
}

// Health is the state of a volume in one word, and what is wrong in a sentence, "" if nothing
// is. nodeVolume may be nil; lost are the names that audits call lost.
func Health(pv *corev1.PersistentVolume, nodeVolume *stowagev1alpha1.NodeVolume, lost bool) (word, problem string) {
	switch {
	case lost:
		return "Lost", "the last audit found no storage for the volume"
	case pv.Status.Phase == corev1.VolumeFailed:
		return "Failed", pv.Status.Message
	case nodeVolume != nil:
		for _, name := range []string{stowagev1alpha1.ReadyCondition, stowagev1alpha1.GrantedCondition, stowagev1alpha1.HealthyCondition} {
			if c := meta.FindStatusCondition(nodeVolume.Status.Conditions, name); c != nil && c.Status == metav1.ConditionFalse {
				return c.Reason, c.Message
			}
		}
	}
	if !pv.DeletionTimestamp.IsZero() {
		return "Terminating", ""
	}
	if nodeVolume != nil && meta.IsStatusConditionTrue(nodeVolume.Status.Conditions, stowagev1alpha1.HealthyCondition) {
		return "Healthy", ""
	}
	return "", ""
}
