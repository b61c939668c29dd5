package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
)

// What a server answers, or a record on a share says, is as long as others like.
func TestWhatObjectsSayIsAsLongAsTheAPITakes(t *testing.T) {
	const reason = ": quota exceeded"
	long := strings.Repeat("é", 1<<20) + reason
	attachment := newVolumeError(errors.New(long), time.Time{})
	claim, object := &corev1.PersistentVolumeClaim{}, &stowagev1alpha1.StorageBackend{}
	waiting := corev1.PersistentVolumeClaimCondition{Type: stowagev1alpha1.BindableCondition, Message: long}
	if !setClaimCondition(claim, waiting) || setClaimCondition(claim, waiting) {
		t.Error("the same long message is another one the second time")
	}
	setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, "Reason", long)
	for name, got := range map[string]string{
		"a VolumeAttachment": attachment.Message,
		"a claim":            claim.Status.Conditions[0].Message,
		"a StorageBackend":   object.Status.Conditions[0].Message,
	} {
		if len(got) > max(message.MaxStatus, message.MaxCondition) || !strings.HasSuffix(got, reason) {
			t.Errorf("%s says %d bytes", name, len(got))
		}
	}
}

func TestAnOrphanWithANameThatNoClaimCanHaveIsListedAndStaysKnown(t *testing.T) {
	object := &stowagev1alpha1.StorageBackend{}
	held := backend.Held{ID: "v1"}
	held.Claim.Name, held.Claim.Namespace, held.Claim.UID = strings.Repeat("n", 1<<20), strings.Repeat("s", 1<<20), "uid"
	found := findings{orphans: []backend.Held{held}}
	first := metav1.NewTime(time.Unix(1e9, 0))
	object.Status.Audit = auditStatus(object, found, first)
	orphan := auditStatus(object, found, metav1.Now()).Orphans[0]
	if len(orphan.ClaimName)+len(orphan.ClaimNamespace) > 1024 {
		t.Errorf("the status has %d bytes of names", len(orphan.ClaimName)+len(orphan.ClaimNamespace))
	}
	if !orphan.Since.Equal(&first) {
		t.Errorf("it counts as found at %s", orphan.Since)
	}
}
