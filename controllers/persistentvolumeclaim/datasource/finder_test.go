package datasource_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/datasource"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// An API server without the feature gate takes no such claim, so that no spec has one.
func TestWhatIsInAnotherNamespaceIsNotRead(t *testing.T) {
	finder := datasource.New(reconciler.Dependencies{}, nil)
	for kind, group := range map[string]string{provisioned.SnapshotKind: provisioned.SnapshotGroup, provisioned.ClaimKind: ""} {
		claim := Claim(func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: kind, Name: "theirs", Namespace: new("tenant")}
		})
		request := backend.Request{Source: &backend.Source{}}
		err := finder.Fill(t.Context(), claim, LocalBackend("disks"), &request)
		if !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "tenant/theirs is in another namespace") || request.Source != nil {
			t.Errorf("of %s it got %v, and the source %v", kind, err, request.Source)
		}
	}
}
