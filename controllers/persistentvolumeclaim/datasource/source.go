package datasource

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

const withoutDataSource = "create the claim without dataSource"

// recordOf is the record of what a claim's volume is made from.
func recordOf(claim *corev1.PersistentVolumeClaim, source backend.Source) provisioned.Restore {
	return provisioned.Restore{
		Attempt: provisioned.AttemptOf(claim), Namespace: source.Namespace, Snapshot: source.Snapshot, Given: source.Given, AnyMode: source.AnyMode,
		Volume: source.ID, Claim: source.Claim.UID,
	}
}
