package controllers

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// create makes objects in the cluster, with their status.
func (w *world) create(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		status := object.DeepCopyObject().(client.Object)
		Expect(w.direct.Create(context.Background(), object)).To(Succeed())
		if node, isNode := object.(*corev1.Node); isNode {
			node.Status = status.(*corev1.Node).Status
			Expect(w.direct.Status().Update(context.Background(), node)).To(Succeed())
		}
	}
}

// get reads an object as it is now.
func (w *world) get(object client.Object) {
	GinkgoHelper()
	Expect(w.direct.Get(context.Background(), client.ObjectKeyFromObject(object), object)).To(Succeed())
}

func (w *world) gone(object client.Object) bool {
	return w.direct.Get(context.Background(), client.ObjectKeyFromObject(object), object) != nil
}

// delete deletes an object, as a user does; finalizers may keep it.
func (w *world) delete(object client.Object) {
	GinkgoHelper()
	Expect(w.direct.Delete(context.Background(), object, client.GracePeriodSeconds(0))).To(Succeed())
}

// update changes an object, as a user does.
func update[T client.Object](w *world, object T, change func(T)) {
	GinkgoHelper()
	w.get(object)
	change(object)
	Expect(w.direct.Update(context.Background(), object)).To(Succeed())
}

// empty removes everything that specs make, finalizers or not.
func (w *world) empty() {
	w.faults = nil
	mirrored.compare()
	for _, list := range []client.ObjectList{
		&storagev1.VolumeAttachmentList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &corev1.NodeList{},
		&stowagev1alpha1.StorageBackendList{}, &stowagev1alpha1.NodeVolumeList{}, &stowagev1alpha1.NodeRecyclingList{},
		&stowagev1alpha1.NodeDiskList{}, &storagev1.CSIStorageCapacityList{},
		&storagev1.StorageClassList{}, &storagev1.VolumeAttributesClassList{},
		&groupsnapshotv1.VolumeGroupSnapshotList{}, &groupsnapshotv1.VolumeGroupSnapshotContentList{}, &groupsnapshotv1.VolumeGroupSnapshotClassList{},
		&snapshotv1.VolumeSnapshotContentList{}, &snapshotv1.VolumeSnapshotList{}, &snapshotv1.VolumeSnapshotClassList{}, &gatewayv1beta1.ReferenceGrantList{},
	} {
		for _, object := range w.all(list) {
			if len(object.GetFinalizers()) > 0 {
				bare := object.DeepCopyObject().(client.Object)
				bare.SetFinalizers(nil)
				_ = w.direct.Patch(context.Background(), bare, client.MergeFrom(object))
			}
			if _, hasGrace := object.(*corev1.Pod); object.GetDeletionTimestamp() != nil && !hasGrace {
				continue // finalizers alone kept it
			}
			_ = w.direct.Delete(context.Background(), object, client.GracePeriodSeconds(0))
		}
	}
}

// condition is the claim's condition Bindable, as a user reads it.
func (w *world) condition(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimCondition {
	GinkgoHelper()
	w.get(claim)
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.BindableCondition {
			return condition
		}
	}
	return corev1.PersistentVolumeClaimCondition{}
}

// newEvents returns the events that were recorded since its last call.
func (w *world) newEvents() []string {
	var recorded []string
	for {
		select {
		case event := <-w.events.Events:
			recorded = append(recorded, event)
		default:
			return recorded
		}
	}
}
