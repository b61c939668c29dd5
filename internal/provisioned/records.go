package provisioned

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
)

// RecordTypes are the conditions of a claim with what the first call to a backend has, and each repeat of it.
var RecordTypes = []corev1.PersistentVolumeClaimConditionType{stowagev1alpha1.PlacementCondition, stowagev1alpha1.RestoreCondition}

// Records are the texts of a claim's records, of whatever attempt. They differ if any of the records does.
func Records(claim *corev1.PersistentVolumeClaim) (texts []string) {
	for _, of := range RecordTypes {
		texts = append(texts, recordIn(claim, of))
	}
	return texts
}

// ClearRecords removes the records from a claim, in memory, and reports whether there were any.
func ClearRecords(claim *corev1.PersistentVolumeClaim) bool {
	if !slices.ContainsFunc(claim.Status.Conditions, isRecord) {
		return false
	}
	claim.Status.Conditions = slices.DeleteFunc(slices.Clone(claim.Status.Conditions), isRecord)
	return true
}

func isRecord(condition corev1.PersistentVolumeClaimCondition) bool {
	return slices.Contains(RecordTypes, condition.Type)
}

// recordIn returns the text of a record; "" for none.
func recordIn(claim *corev1.PersistentVolumeClaim, of corev1.PersistentVolumeClaimConditionType) string {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == of {
			return condition.Message
		}
	}
	return ""
}

// recordText returns a record as it is written, and whether it fits into a status.
func recordText(record any) (text string, fits bool, err error) {
	encoded, err := json.Marshal(record)
	if err != nil {
		return "", false, fmt.Errorf("writing a record of a call: %w", err)
	}
	return string(encoded), len(encoded) <= message.MaxCondition, nil
}
