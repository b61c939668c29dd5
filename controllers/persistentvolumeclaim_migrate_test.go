package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/bindable"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const googleDisks = "pd.csi.storage.gke.io"

var _ = Describe("A claim of a class with an in-tree provisioner", func() {
	It("is left to the CSI driver that took the type over", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("standard"))
		w.create(Class("standard", "kubernetes.io/gce-pd", nil), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("ExternalProvisioning"))
		Expect(w.condition(claim).Message).To(ContainSubstring(googleDisks))
		Expect(claim.Annotations).To(And(
			HaveKeyWithValue(volume.AnnStorageProvisioner, googleDisks), HaveKeyWithValue(volume.AnnBetaStorageProvisioner, googleDisks)))
	})

	It("says that no provisioner can make its volume, where none took the type over", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("old"))
		w.create(Class("old", "kubernetes.io/rbd", nil), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal(bindable.ReasonProvisioningFailed))
		Expect(w.newEvents()).To(ConsistOf(HavePrefix("Warning ProvisioningFailed StorageClass \"old\"")))
		Expect(claim.Annotations).NotTo(HaveKey(volume.AnnStorageProvisioner))
	})

	It("is marked as migrated, also when it is bound, where its annotation names the in-tree provisioner", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBetaStorageProvisioner, "kubernetes.io/gce-pd")
		w.create(Volume("v", gcePD), claim)
		w.settle()
		expectBound(w, claim, Volume("v"))

		Expect(claim.Annotations).To(HaveKeyWithValue(volume.AnnMigratedTo, googleDisks))
	})

	It("names the resizer of the CSI driver when it requests more", func() {
		w := newWorld(reconciler.ClusterScope)
		class := Class("standard", "kubernetes.io/gce-pd", nil)
		class.AllowVolumeExpansion = new(true)
		claim := Claim(InClass("standard"))
		w.create(class, Volume("v", gcePD, OfClass("standard")), claim)
		w.settle()
		w.newEvents()

		w.requestSize(claim, "2Gi")
		w.settle()

		Expect(w.read(claim).Annotations).To(HaveKeyWithValue("volume.kubernetes.io/storage-resizer", googleDisks))
		Expect(w.newEvents()).To(HaveExactElements(ContainSubstring("Normal ExternalExpanding")))
	})
})

var _ = Describe("A claim whose StorageClass does not exist", func() {
	It("says so in a warning, once, whatever becomes of volumes that do not fit", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("missing"), Asking("5Gi"))
		w.create(claim)
		w.settle()
		w.create(Volume("small", OfClass("missing")))
		w.settle()

		Expect(w.newEvents()).To(ConsistOf(HavePrefix("Warning ProvisioningFailed")))
		Expect(w.condition(claim).Message).To(And(ContainSubstring(`no StorageClass "missing"`), ContainSubstring("1 too small")))
	})
})
