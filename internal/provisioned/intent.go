package provisioned

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Intent is the content of the annotation on a claim for which a backend may
// have been called: enough to find the backend again. Users can write it, so it
// only says where to look. What may be removed there is computed from the
// claim's UID, and the backend's own record of the owner has to agree.
type Intent struct {
	Backend string `json:"backend"`
	Node    string `json:"node,omitempty"`
	// Topologies are what the class allowed: a backend that chooses a place for the
	// volume chooses the same for a repeat, though the class is gone or made anew by then.
	Topologies []corev1.TopologySelectorTerm `json:"topologies,omitempty"`
	Attempt    int                           `json:"attempt"`
	// Undoing says that nothing is being made any more: what is there is removed,
	// and Provision, which would make it again, is not repeated.
	Undoing bool `json:"undoing,omitempty"`
	// Leaving is the node that can't have the volume, Because is why: once nothing
	// is left of what was begun, the scheduler is asked for another.
	Leaving string `json:"leaving,omitempty"`
	Because string `json:"because,omitempty"`
}

// IntentOf reads the annotation.
func IntentOf(claim *corev1.PersistentVolumeClaim) (Intent, error) {
	noted := Intent{}
	if err := json.Unmarshal([]byte(claim.Annotations[stowagev1alpha1.ProvisioningAnnotation]), &noted); err != nil {
		return Intent{}, fmt.Errorf("reading the annotation %s: %w", stowagev1alpha1.ProvisioningAnnotation, err)
	}
	return noted, nil
}

// HasIntent tells whether anything on a claim says that a backend may have been
// called for it.
func HasIntent(claim *corev1.PersistentVolumeClaim) bool {
	_, noted := claim.Annotations[stowagev1alpha1.ProvisioningAnnotation]
	return noted || controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer)
}

// ClearIntent takes the intent off a claim, in memory, and tells whether there
// was one.
func ClearIntent(claim *corev1.PersistentVolumeClaim) bool {
	noted := HasIntent(claim)
	delete(claim.Annotations, stowagev1alpha1.ProvisioningAnnotation)
	controllerutil.RemoveFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer)
	return noted
}
