package storagebackend

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
)

func TestAConditionIsAsLongAsTheAPITakes(t *testing.T) {
	const reason = ": quota exceeded"
	object := &stowagev1alpha1.StorageBackend{}
	setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, "Reason", strings.Repeat("é", 1<<20)+reason)
	if said := object.Status.Conditions[0].Message; len(said) > message.MaxCondition || !strings.HasSuffix(said, reason) {
		t.Errorf("a StorageBackend says %d bytes", len(said))
	}
}
