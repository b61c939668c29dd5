package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/attachintent"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = DescribeTable("A node that changes wakes the attachments to it",
	func(change func(*corev1.Node), wakes bool) {
		before := Node("node-1")
		after := before.DeepCopy()
		change(after)
		Expect(attachintent.OnlyNewUse.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(wakes))
	},
	Entry("not when it says that it is alive", func(node *corev1.Node) {
		node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now())
		node.Labels["example.com/colour"] = "blue"
	}, false),
	Entry("when it falls silent", func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }, true),
	Entry("when it is out of service", outOfService, true),
	Entry("when it releases a volume, or uses one", func(node *corev1.Node) {
		node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/gce.stowage.dev^disk"}
	}, true),
	Entry("when a volume is marked as attached", func(node *corev1.Node) {
		node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/gce.stowage.dev^disk"}}
	}, true),
	Entry("when another machine has its name", func(node *corev1.Node) { node.Spec.ProviderID = "gce://project/zone/other" }, true),
	Entry("when it registered again", func(node *corev1.Node) { node.UID = "another" }, true),
)

var _ = DescribeTable("An attachment that changes wakes itself",
	func(change func(*storagev1.VolumeAttachment), wakes bool) {
		before := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1", ResourceVersion: "1"}}
		before.Status.AttachError = &storagev1.VolumeError{Message: "too many calls"}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		change(after)
		Expect(volumeattachment.ExceptOwnErrors.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(wakes))
	},
	Entry("not when it says why it fails", func(attachment *storagev1.VolumeAttachment) {
		attachment.Status.AttachError = &storagev1.VolumeError{Message: "no room"}
		attachment.Status.DetachError = &storagev1.VolumeError{Message: "in use"}
	}, false),
	Entry("when its error is removed", func(attachment *storagev1.VolumeAttachment) { attachment.Status.AttachError = nil }, true),
	Entry("when its status.attached is changed by hand", func(attachment *storagev1.VolumeAttachment) { attachment.Status.Attached = true }, true),
	Entry("when it is deleted", func(attachment *storagev1.VolumeAttachment) { attachment.DeletionTimestamp = &metav1.Time{} }, true),
	Entry("when a resync comes", func(attachment *storagev1.VolumeAttachment) { attachment.ResourceVersion = "1" }, true),
)
