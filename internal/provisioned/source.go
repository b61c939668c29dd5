package provisioned

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// ClaimKind is the kind of a data source that is a claim.
	ClaimKind = "PersistentVolumeClaim"
	// SnapshotKind is the kind of a data source that is a snapshot.
	SnapshotKind = "VolumeSnapshot"
	// SnapshotGroup is the API group of snapshots.
	SnapshotGroup = "snapshot.storage.k8s.io"
)

// SourceKey names the object that a claim's volume is filled from; found is false for none. It may be in another namespace.
func SourceKey(claim *corev1.PersistentVolumeClaim) (kind string, key types.NamespacedName, found bool) {
	source := DataSource(claim)
	if source == nil {
		return "", types.NamespacedName{}, false
	}
	return source.Kind, types.NamespacedName{Namespace: cmp.Or(ptr.Deref(source.Namespace, ""), claim.Namespace), Name: source.Name}, true
}

// Elsewhere is the namespace of the object that a claim's volume is filled from; "" for the claim's own, and without an object.
func Elsewhere(claim *corev1.PersistentVolumeClaim) string {
	if _, key, found := SourceKey(claim); found && key.Namespace != claim.Namespace {
		return key.Namespace
	}
	return ""
}

// NameFor is the name of a claim for an object of a namespace: with the claim's own namespace if that is another.
func NameFor(namespace string, claim *corev1.PersistentVolumeClaim) string {
	if claim.Namespace == namespace {
		return claim.Name
	}
	return claim.Namespace + "/" + claim.Name
}

// DataSource returns the object that a claim's volume is filled from, or nil. The API server
// copies one of the two fields to the other if both can express it.
func DataSource(claim *corev1.PersistentVolumeClaim) *corev1.TypedObjectReference {
	if ref := claim.Spec.DataSourceRef; ref != nil {
		return ref
	}
	if ref := claim.Spec.DataSource; ref != nil {
		return &corev1.TypedObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
	return nil
}

// IsClaim reports whether a data source is another claim.
func IsClaim(source *corev1.TypedObjectReference) bool {
	return source.Kind == ClaimKind && ptr.Deref(source.APIGroup, "") == ""
}

// IsSnapshot reports whether a data source is a VolumeSnapshot.
func IsSnapshot(source *corev1.TypedObjectReference) bool {
	return source.Kind == SnapshotKind && ptr.Deref(source.APIGroup, "") == SnapshotGroup
}
