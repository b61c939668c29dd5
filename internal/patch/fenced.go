package patch

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Fenced is the merge patch from before to the written object. It fails with a conflict if the
// object changed since before was read.
func Fenced(before client.Object) client.Patch {
	return fenced{Patch: client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), before: before}
}

// fenced is handwritten where only annotations and finalizers changed, and computed otherwise.
type fenced struct {
	client.Patch
	before client.Object
}

// Data implements client.Patch.
func (f fenced) Data(after client.Object) ([]byte, error) {
	if !hasNewMetadataOnly(f.before, after) {
		return f.Patch.Data(after)
	}
	return Written{types.MergePatchType, struct {
		Metadata Metadata `json:"metadata"`
	}{metadataChange(f.before, after)}}.Data(after)
}

// hasNewMetadataOnly reports whether an object differs from before only in what Metadata has. It is known of
// the kinds that are written most.
func hasNewMetadataOnly(before, after client.Object) bool {
	switch before := before.(type) {
	case *corev1.PersistentVolumeClaim:
		return equalButMetadata(before, after)
	case *corev1.PersistentVolume:
		return equalButMetadata(before, after)
	case *storagev1.VolumeAttachment:
		return equalButMetadata(before, after)
	case *stowagev1alpha1.NodeVolume:
		return equalButMetadata(before, after)
	default:
		return false
	}
}

func equalButMetadata[O any, Pointer interface {
	*O
	client.Object
}](before Pointer, after client.Object) bool {
	now, is := after.(Pointer)
	if !is {
		return false
	}
	updated := *before
	Pointer(&updated).SetAnnotations(now.GetAnnotations())
	Pointer(&updated).SetFinalizers(now.GetFinalizers())
	return reflect.DeepEqual(Pointer(&updated), now)
}
