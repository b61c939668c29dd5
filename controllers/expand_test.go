package controllers

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/expansion"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// expandable lets claims of a backend's class grow.
func expandable(object *stowagev1alpha1.StorageBackend) {
	object.Spec.StorageClass.AllowVolumeExpansion = true
}

// boundClaim is a claim of 1Gi whose volume was made, in a cluster at rest.
func (w *world) boundClaim() *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := Claim(InClass("disks"))
	w.create(LocalBackend("disks", expandable), claim)
	w.settle()
	w.newEvents()
	Expect(w.read(claim).Status.Phase).To(Equal(corev1.ClaimBound))
	return claim
}

// requestSize changes a claim's request, as a user does, and settles the cluster.
func (w *world) requestSize(claim *corev1.PersistentVolumeClaim, size string) {
	GinkgoHelper()
	update(w, claim, Asking(size))
	w.settle()
	w.get(claim)
}

func (w *world) read(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	w.get(claim)
	return claim
}

func (w *world) volumeOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := Volume(w.read(claim).Spec.VolumeName)
	w.get(pv)
	return pv
}

// resizeError is why a claim's volume doesn't grow: "<reason>: <message>".
func (w *world) resizeError(claim *corev1.PersistentVolumeClaim) string {
	GinkgoHelper()
	for _, condition := range w.read(claim).Status.Conditions {
		if condition.Type == corev1.PersistentVolumeClaimControllerResizeError {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// expansions are the calls of Expand that the backend saw.
func (w *world) expansions() []string {
	return slices.DeleteFunc(w.storage.Calls(), func(call string) bool { return !strings.HasPrefix(call, "Expand ") })
}

// growOnNode does what a kubelet does when it has grown a file system.
func (w *world) growOnNode(claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	pv := w.volumeOf(claim)
	claim.Status.Capacity[corev1.ResourceStorage] = pv.Spec.Capacity[corev1.ResourceStorage]
	delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	bindable.RemoveConditions(claim, expansion.ResizeConditions...)
	Expect(w.direct.Status().Update(context.Background(), claim)).To(Succeed())
}

// bindByHand does what kube-controller-manager does with a volume that was made.
func (w *world) bindByHand(claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	pv := Volume(provisioned.VolumeID(w.read(claim)))
	w.get(pv)
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName = pv.Name
		claim.Annotations[volume.AnnBindCompleted] = "yes"
	})
	claim.Status.Phase, claim.Status.Capacity, claim.Status.AccessModes = corev1.ClaimBound, pv.Spec.Capacity, pv.Spec.AccessModes
	Expect(w.direct.Status().Update(context.Background(), claim)).To(Succeed())
	w.settle()
}

// expectExpanded expects a claim to have a size, as its volume and the storage have,
// and nothing left of its growth.
func expectExpanded(w *world, claim *corev1.PersistentVolumeClaim, size string) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := w.volumeOf(claim)
	held := w.storage.Capacity(pv.Spec.CSI.VolumeHandle)
	Expect(held.String()).To(Equal(size), "the storage")
	Expect(pv.Spec.Capacity.Storage().String()).To(Equal(size), "the volume")
	Expect(claim.Status.Capacity.Storage().String()).To(Equal(size), "the claim")
	Expect(claim.Status.AllocatedResourceStatuses).To(BeEmpty())
	for _, condition := range claim.Status.Conditions {
		Expect(expansion.ResizeConditions).NotTo(ContainElement(condition.Type))
	}
	return pv
}

func exhausted(times int) []error {
	return slices.Repeat([]error{backend.Exhausted.Errorf("4Gi are left")}, times)
}
