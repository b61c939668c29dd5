package provisioned

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Placement is the record of where a backend may make a claim's volume. It is in the status, which
// users can't write: with other places, an undo would miss the volume.
type Placement struct {
	Attempt int    `json:"attempt"`
	Node    string `json:"node,omitempty"`
	backend.Placement
}

// PlacementOf returns the record of a claim's current attempt; nil if there is none.
func PlacementOf(claim *corev1.PersistentVolumeClaim) *Placement {
	placement := &Placement{}
	if err := json.Unmarshal([]byte(recordIn(claim, stowagev1alpha1.PlacementCondition)), placement); err != nil || placement.Attempt != AttemptOf(claim) {
		return nil
	}
	return placement
}

// Text returns the record for the status, and whether it fits there.
func (p Placement) Text() (text string, fits bool, err error) { return recordText(p) }
