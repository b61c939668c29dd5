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
	if !hasNewMarksOnly(f.before, after) {
		return f.Patch.Data(after)
	}
	return Written{types.MergePatchType, struct {
		Metadata Metadata `json:"metadata"`
	}{metadataChange(f.before, after)}}.Data(after)
}

// hasNewMarksOnly reports whether an object differs from before in annotations and finalizers at most. It is
// known of the kinds that are written most.
func hasNewMarksOnly(before, after client.Object) bool {
	switch before := before.(type) {
	case *corev1.PersistentVolumeClaim:
		return equalButMarks(before, after)
	case *corev1.PersistentVolume:
		return equalButMarks(before, after)
	case *storagev1.VolumeAttachment:
		return equalButMarks(before, after)
	case *stowagev1alpha1.NodeVolume:
		return equalButMarks(before, after)
	default:
		return false
	}
}

func equalButMarks[O any, Pointer interface {
	*O
	client.Object
}](before Pointer, after client.Object) bool {
	now, is := after.(Pointer)
	if !is {
		return false
	}
	marked := *before
	Pointer(&marked).SetAnnotations(now.GetAnnotations())
	Pointer(&marked).SetFinalizers(now.GetFinalizers())
	return reflect.DeepEqual(Pointer(&marked), now)
}
