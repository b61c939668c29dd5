package bindable

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
)

// What a server answers, or a record on a share says, is as long as others like.
func TestWhyAClaimWaitsIsAsLongAsTheAPITakes(t *testing.T) {
	const reason = ": quota exceeded"
	long := strings.Repeat("é", 1<<20) + reason
	claim := &corev1.PersistentVolumeClaim{}
	waiting := corev1.PersistentVolumeClaimCondition{Type: stowagev1alpha1.BindableCondition, Message: long}
	if !SetCondition(claim, waiting) || SetCondition(claim, waiting) {
		t.Error("the same long message is another one the second time")
	}
	if said := claim.Status.Conditions[0].Message; len(said) > message.MaxCondition || !strings.HasSuffix(said, reason) {
		t.Errorf("a claim says %d bytes", len(said))
	}
}
