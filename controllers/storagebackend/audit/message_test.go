package audit

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

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
