package snapshots

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAContentIsOfTheVolumeSnapshotThatItNamesByUID(t *testing.T) {
	snapshot := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "before", UID: "u1"}}
	for _, of := range []struct {
		ref       corev1.ObjectReference
		names, is bool
	}{
		{corev1.ObjectReference{Namespace: "shop", Name: "before", UID: "u1"}, true, true},
		{corev1.ObjectReference{Namespace: "shop", Name: "before"}, true, false},
		{corev1.ObjectReference{Namespace: "shop", Name: "before", UID: "u0"}, true, false},
		{corev1.ObjectReference{Namespace: "other", Name: "before", UID: "u1"}, false, false},
		{corev1.ObjectReference{Namespace: "shop", Name: "after", UID: "u1"}, false, false},
	} {
		content := &snapshotv1.VolumeSnapshotContent{Spec: snapshotv1.VolumeSnapshotContentSpec{VolumeSnapshotRef: of.ref}}
		if IsFor(content, snapshot) != of.names || IsOf(content, snapshot) != of.is {
			t.Errorf("a content that names %v is for it: %t, is of it: %t", of.ref, IsFor(content, snapshot), IsOf(content, snapshot))
		}
	}
}
