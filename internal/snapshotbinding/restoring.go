package snapshotbinding

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// Restoring returns the name of a claim that is being restored from one of the VolumeSnapshots of a namespace; "" for none. The
// cache only saves live reads.
func (c *Claims) Restoring(ctx context.Context, namespace string, from ...*snapshotv1.VolumeSnapshot) (string, error) {
	sources := map[types.NamespacedName]bool{}
	for _, snapshot := range from {
		key := client.ObjectKeyFromObject(snapshot)
		sources[key] = true
		fromSnapshot := client.MatchingFields{index.ClaimsBySource: index.SourceKey(provisioned.SnapshotKind, key)}
		if name, err := restoringIn(ctx, c.client, namespace, sources, fromSnapshot); name != "" || err != nil {
			return name, err
		}
	}
	if len(from) == 0 {
		return "", nil
	}
	return restoringIn(ctx, c.live, namespace, sources, client.InNamespace(namespace))
}

func restoringIn(ctx context.Context, from client.Reader, namespace string, sources map[types.NamespacedName]bool, options ...client.ListOption) (string, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := from.List(ctx, claims, options...); err != nil {
		return "", fmt.Errorf("listing the claims that are restored from VolumeSnapshots of namespace %s: %w", namespace, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		_, source, found := provisioned.SourceKey(claim)
		if found && provisioned.IsSnapshot(provisioned.DataSource(claim)) && sources[source] && mayKeep(claim) && claim.Status.Phase == corev1.ClaimPending {
			return provisioned.NameFor(namespace, claim), nil
		}
	}
	return "", nil
}

// mayKeep reports whether a claim keeps the VolumeSnapshot that it names. One of another namespace has to have begun: each
// tenant can name a VolumeSnapshot of another.
func mayKeep(claim *corev1.PersistentVolumeClaim) bool {
	return provisioned.Elsewhere(claim) == "" || provisioned.HasIntent(claim) && provisioned.RestoreOf(claim).Snapshot != ""
}
