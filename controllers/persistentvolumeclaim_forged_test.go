package controllers

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// forgedVolume in a forged annotation is the id of the other tenant's volume.
const forgedVolume = "VICTIM"

var _ = Describe("A user with forged annotations of a claim", func() {
	forgeries := []struct{ name, intent string }{
		{"an intent", `{"backend":"disks","attempt":1}`},
		{"an intent that names the other volume", `{"backend":"disks","volume":"VICTIM","id":"VICTIM","attempt":1}`},
		{"an intent that is being undone", `{"backend":"disks","attempt":1,"undoing":true}`},
		{"an intent of another attempt", `{"backend":"disks","attempt":7,"undoing":true}`},
		{"an intent whose attempt is a path", `{"backend":"disks","attempt":"../VICTIM"}`},
		{"an intent on another node", `{"backend":"disks","node":"node-1","attempt":1}`},
		{"an intent that leaves a node", `{"backend":"disks","leaving":"node-1","because":"x","attempt":1}`},
		{"an intent in a backend that does not exist", `{"backend":"../disks","attempt":1,"undoing":true}`},
		{"an intent in the other tenant's backend", `{"backend":"others","attempt":1,"undoing":true}`},
		{"what is no intent", `VICTIM`},
	}
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		for _, forgery := range forgeries {
			It("neither removes nor gets another tenant's volume by "+forgery.name+", in scope="+string(scope), func() {
				w, victim, forger := tenants(scope)
				pv := Volume(provisioned.VolumeID(victim))

				update(w, forger, forging(strings.ReplaceAll(forgery.intent, forgedVolume, pv.Name)))
				w.settle()
				expectUntouched(w, pv, forger)

				w.delete(forger)
				w.settle()
				expectUntouched(w, pv, forger)
			})
		}
	}

	It("hides no orphan by a claim of the name that the orphan's had", func() {
		w, orphan := orphaned()
		w.create(Claim(ClaimNamed(orphan.Claim.Name), forging(`{"backend":"disks","attempt":1}`)))

		w.passTime(time.Hour)
		w.settle()

		Expect(w.audit().Orphans).To(ConsistOf(HaveField("ID", orphan.ID)))
	})

	It("gets no orphan's data by a claim of the name that the orphan's had", func() {
		w, orphan := orphaned()
		claim := Claim(ClaimNamed(orphan.Claim.Name), InClass("disks"), forging(`{"backend":"disks","attempt":1}`))
		w.create(claim)

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(provisioned.VolumeID(claim)).NotTo(Equal(orphan.ID))
		Expect(w.storage.Has(orphan.ID)).To(BeTrue())
	})
})

// tenants is a world in which one tenant has a volume, and another a claim.
func tenants(scope reconciler.Scope) (w *world, victim, forger *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w = newWorld(scope)
	victim = Claim(ClaimNamed("victim"), InClass("disks"), requestedFrom(stowagev1alpha1.LocalDriver))
	forger = Claim(ClaimNamed("forger"), InClass("none"))
	w.create(LocalBackend("disks"), LocalBackend("others"), victim, forger)
	w.settle()
	Expect(w.storage.Has(provisioned.VolumeID(victim))).To(BeTrue())
	return w, victim, forger
}

// forging writes on a claim what only Stowage and Kubernetes write.
func forging(intent string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation, intent)
		requestedFrom(stowagev1alpha1.LocalDriver)(claim)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnDynamicallyProvisioned, stowagev1alpha1.LocalDriver)
		claim.Finalizers = append(claim.Finalizers, stowagev1alpha1.ProvisioningFinalizer)
	}
}

// expectUntouched expects that the other tenant's volume was neither removed nor
// given away.
func expectUntouched(w *world, pv *corev1.PersistentVolume, forger *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.get(pv)
	Expect(pv.DeletionTimestamp).To(BeNil())
	Expect(pv.Spec.ClaimRef.Name).To(Equal("victim"))
	Expect(w.storage.Has(pv.Name)).To(BeTrue())
	Expect(slices.Contains(w.storage.Calls(), "Delete "+pv.Name)).To(BeFalse())
	if !w.gone(forger) {
		w.get(forger)
		Expect(forger.Spec.VolumeName).To(BeEmpty())
	}
}
