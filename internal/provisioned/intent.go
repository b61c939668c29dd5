package provisioned

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Intent is the content of the annotation of a pending operation, on a claim for which a
// backend may have been called. It suffices to find the backend again. Users can write it, so
// it only points to a backend. What may be removed there is computed from the claim's UID, and
// the backend's own record of the owner has to agree.
type Intent struct {
	Backend string `json:"backend"`
	Node    string `json:"node,omitempty"`
	// Topologies are the allowed topologies of the class. A backend that chooses a topology
	// chooses the same in a repeat, even if the class was deleted or recreated since.
	Topologies []corev1.TopologySelectorTerm `json:"topologies,omitempty"`
	Attempt    int                           `json:"attempt"`
	// Class is the StorageClass whose parameters the call has: a backend of kind csi finds what was
	// made by a repeat of the call, and a cloud takes a call with others for another.
	Class *Class `json:"class,omitempty"`
	// Attributes is the VolumeAttributesClass whose parameters the call has, too.
	Attributes *Class `json:"attributes,omitempty"`
	// Settings identifies what a StorageBackend of kind csi adds to the call, which is only repeated
	// with the same.
	Settings string `json:"settings,omitempty"`
	// Records means that what is copied is recorded before the call. An intent of an earlier version
	// doesn't say so: without a record, its call may have been made all the same.
	Records bool `json:"records,omitempty"`
	// Undoing means that provisioning is being undone: the storage is removed, and Provision,
	// which would create it again, is not repeated.
	Undoing bool `json:"undoing,omitempty"`
	// Leaving is the node that cannot have the volume, and Because is the reason. Once nothing
	// is left of the attempt, the scheduler chooses another node.
	Leaving string `json:"leaving,omitempty"`
	Because string `json:"because,omitempty"`
}

// Class identifies a StorageClass or a VolumeAttributesClass. Its parameters are immutable, and one that is created again
// under the name has another UID.
type Class struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// IntentOf reads the annotation.
func IntentOf(claim *corev1.PersistentVolumeClaim) (Intent, error) {
	intent := Intent{}
	if err := json.Unmarshal([]byte(claim.Annotations[stowagev1alpha1.ProvisioningAnnotation]), &intent); err != nil {
		return Intent{}, fmt.Errorf("reading the annotation %s: %w", stowagev1alpha1.ProvisioningAnnotation, err)
	}
	return intent, nil
}

// HasIntent reports whether a backend may have been called for a claim, by its annotation or
// its finalizer.
func HasIntent(claim *corev1.PersistentVolumeClaim) bool {
	_, annotated := claim.Annotations[stowagev1alpha1.ProvisioningAnnotation]
	return annotated || controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer)
}

// ClearIntent removes the pending operation from a claim, in memory, and reports whether there
// was one.
func ClearIntent(claim *corev1.PersistentVolumeClaim) bool {
	had := HasIntent(claim)
	delete(claim.Annotations, stowagev1alpha1.ProvisioningAnnotation)
	controllerutil.RemoveFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer)
	return had
}
