package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// csiDriver is a driver that isn't one of Stowage's.
const csiDriver = "disk.example.com"

// csiBackend is the StorageBackend of the driver, which keeps the class "kept".
func csiBackend(options ...func(*stowagev1alpha1.StorageBackend)) *stowagev1alpha1.StorageBackend {
	object := LocalBackend(csiDriver, options...)
	object.Spec.Local = nil
	object.Spec.CSI = &stowagev1alpha1.CSIBackend{
		Driver: csiDriver, Endpoint: "unix:///csi/csi.sock", Parameters: map[string]stowagev1alpha1.CSIParameter{"pool": "a"},
		Secrets: stowagev1alpha1.CSISecrets{
			Provision: &stowagev1alpha1.SecretReference{Name: "maker"}, ControllerPublish: &stowagev1alpha1.SecretReference{Name: "publisher"},
			ControllerExpand: &stowagev1alpha1.SecretReference{Name: "expander"}, NodeStage: &stowagev1alpha1.SecretReference{Name: "stager"},
			NodePublish: &stowagev1alpha1.SecretReference{Name: "node-publisher"}, NodeExpand: &stowagev1alpha1.SecretReference{Name: "node-expander"},
		},
	}
	object.Spec.StorageClass.Name, object.Spec.StorageClass.AllowVolumeExpansion = "kept", true
	return object
}

// newCSIWorld is a cluster with the driver, and a class "tiered" of it.
func newCSIWorld(scope reconciler.Scope) *world {
	GinkgoHelper()
	w := newWorld(scope)
	DeferCleanup(func() {
		for _, object := range w.all(&storagev1.CSINodeList{}) {
			_ = w.direct.Delete(context.Background(), object)
		}
		_ = w.direct.Delete(context.Background(), registeredDriver())
	})
	w.create(csiBackend(), tiered())
	w.settle()
	w.newEvents()
	return w
}

// tiered is a class with parameters of the driver.
func tiered() *storagev1.StorageClass {
	class := Class("tiered", csiDriver, map[string]string{"tier": "gold"})
	class.MountOptions = []string{"noatime"}
	return class
}

// madeByDriver is a cluster with a bound claim of the driver.
func madeByDriver() (*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newCSIWorld(reconciler.ClusterScope)
	claim := Claim(InClass("kept"))
	w.create(claim)
	w.settle()
	pv := Volume(provisioned.VolumeID(claim))
	expectBound(w, claim, pv)
	w.newEvents()
	return w, claim, pv
}

// halfMadeByDriver is a cluster with a claim whose storage the driver made, and whose volume object
// is lost on the way. The writes are those of the class's finalizer, of the claim's operation, and
// of the volume object.
func halfMadeByDriver() (*world, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w := newCSIWorld(reconciler.ClusterScope)
	claim := Claim(InClass("tiered"))
	w.create(claim)
	w.faults = map[int]fault{w.written + 2: lost}
	_ = w.round()
	Expect(w.storage.Len()).To(Equal(1))
	Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
	return w, claim
}

// attachedByDriver is a cluster with a volume that the driver attached to a node.
func attachedByDriver() (*world, *storagev1.VolumeAttachment, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, _, pv := madeByDriver()
	w.create(machine("node-1"), registered("node-1", "id-1"))
	attachment := attachmentTo("node-1", pv)
	w.create(attachment)
	w.settle()
	w.get(attachment)
	Expect(attachment.Status.Attached).To(BeTrue())
	Expect(w.storage.AttachedTo(pv.Name)).To(Equal([]string{"id-1"}))
	return w, attachment, pv
}

// registeredDriver is the driver's CSIDriver, which lets the scheduler go by its capacity.
func registeredDriver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: csiDriver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
}

// registered is a CSINode of the driver, which gave the node an id.
func registered(node, id string) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: csiDriver, NodeID: id}}},
	}
}

func hasProvisioningFinalizer(w *world, class *storagev1.StorageClass) bool {
	GinkgoHelper()
	w.get(class)
	for _, finalizer := range class.Finalizers {
		if finalizer == stowagev1alpha1.ProvisioningFinalizer {
			return true
		}
	}
	return false
}
