package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/datasource"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim that is to be a copy of another", func() {
	It("gets a volume that the backend makes from the other's", func() {
		w := newWorldIn(newMemory())
		source := w.boundClaim()
		claim := copyOf("data")
		w.create(claim)

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(HaveField("ID", provisioned.VolumeID(source))))
	})

	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		DescribeTable("and whose class waits for a pod, without one in scope="+string(scope),
			func(source func(*corev1.PersistentVolumeClaim), prepare func(*world), made bool) {
				w := newWorldIn(newMemory())
				w.boundClaim()
				prepare(w)
				late := Class("late", stowagev1alpha1.LocalDriver, map[string]string{stowagev1alpha1.BackendParameter: "disks"})
				late.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
				claim := Claim(ClaimNamed("copy"), InClass("late"), source)
				w.scope = scope
				w.restart()
				w.create(late, claim)

				w.settle()

				Expect(w.storage.Has(provisioned.VolumeID(claim))).To(Equal(made))
			},
			Entry("is made where the backend makes copies beside their source",
				startingFrom("", provisioned.ClaimKind, "data"), func(w *world) { w.storage.SetInPlace() }, true),
			Entry("waits where a copy may lie elsewhere",
				startingFrom("", provisioned.ClaimKind, "data"), func(*world) {}, false),
			Entry("waits where it isn't a copy",
				func(*corev1.PersistentVolumeClaim) {}, func(w *world) { w.storage.SetInPlace() }, false),
			Entry("waits where a populator fills it",
				startingFrom("example.com", "Backup", "data"), func(w *world) { w.storage.SetInPlace() }, false),
		)
	}

	It("waits for the other to have a volume", func() {
		w := newWorldIn(newMemory())
		claim := copyOf("data")
		w.create(LocalBackend("disks"), claim)
		w.settle()
		Expect(w.condition(claim).Message).To(ContainSubstring("claim default/data, which is to be copied, does not exist"))

		w.create(Claim(InClass("disks")))
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("does not get an empty volume that would fit", func() {
		w := newWorldIn(newMemory())
		claim := copyOf("data")
		empty := Volume("empty", OfClass("disks"))
		w.create(LocalBackend("disks"), empty, claim)

		w.settle()

		Expect(w.read(claim).Spec.VolumeName).To(BeEmpty())
		w.get(empty)
		Expect(empty.Spec.ClaimRef).To(BeNil())
	})

	It("is made though the other is deleted in between, which stays until then", func() {
		w, source, claim := copying()
		w.delete(source)
		_, err := w.claims.Reconcile(GinkgoT().Context(), wake.Request(source))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("Normal ClaimInUse the claim is kept while its volume is copied for claim copy")))

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(HaveField("ID", provisioned.VolumeID(source))))
		w.settle()
		Expect(w.gone(source)).To(BeTrue())
	})

	It("lets the other go when it is deleted itself", func() {
		w, source, claim := copying()
		w.delete(source)
		w.delete(claim)

		w.settle()
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.gone(source)).To(BeTrue())
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())
	})

	It("is made of the same volume, though another claim has the name by now", func() {
		w, source, claim := copying()
		removeByForce(w, source)
		w.create(Claim(InClass("disks")))

		w.settle()

		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(HaveField("ID", provisioned.VolumeID(source))))
	})

	It("that an earlier version began is found, although the other went in between", func() {
		w, source, claim := copying()
		w.storage.Begin(provisioned.VolumeID(claim), backend.Request{Claim: provisioning.RequestFrom(claim).Claim, Capacity: provisioning.RequestFrom(claim).Capacity})
		withoutRecord(w, claim)
		removeByForce(w, source)

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("that an earlier version was about to begin gets no empty volume, where the other went", func() {
		w, source, claim := copying()
		withoutRecord(w, claim)
		removeByForce(w, source)

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring(`there is no volume "" to copy`))
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())
	})

	DescribeTable("was copied by external-provisioner, and is deleted,",
		func(goes bool, options ...func(*corev1.PersistentVolumeClaim)) {
			w := newWorldIn(newMemory())
			source := w.boundClaim()
			update(w, source, func(claim *corev1.PersistentVolumeClaim) {
				claim.Finalizers = append(claim.Finalizers, datasource.CloningProtection)
			})
			if len(options) > 0 {
				pending := copyOf("data", append(options, InClass("absent"))...)
				pending.Status.Phase = corev1.ClaimPending
				w.create(pending)
				w.settle()
			}
			w.delete(source)

			w.settle()

			Expect(w.gone(source)).To(Equal(goes))
		},
		Entry("goes without a copy", true),
		Entry("stays while another driver may be copying it", false, func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{volume.AnnStorageProvisioner: "other.example.com"}
		}),
		Entry("goes though a claim is to be a copy that no driver was asked for", true, func(*corev1.PersistentVolumeClaim) {}),
	)

	It("isn't begun of a claim that is deleted just then", func() {
		w := newWorldIn(newMemory())
		source, claim := w.boundClaim(), copyOf("data")
		update(w, source, func(claim *corev1.PersistentVolumeClaim) {
			claim.Finalizers = append(claim.Finalizers, datasource.CloningProtection, "example.com/kept")
		})
		w.create(claim)
		shown := w.read(source)
		w.delete(source)
		w.views.claims.Client = showingClaim{w.views.claims.Client, shown}

		_, err := w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.condition(claim).Message).To(ContainSubstring("is deleted, or was created again"))
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())
	})

	DescribeTable("is refused, with a reason, and nothing is made",
		func(reason string, options ...func(*corev1.PersistentVolumeClaim)) {
			w := newWorldIn(newMemory())
			w.boundClaim()
			w.create(LocalBackend("others"))
			claim := copyOf("data", options...)
			w.create(claim)

			w.settle()

			Expect(w.condition(claim).Message).To(ContainSubstring(reason))
			Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())
			Expect(provisioned.HasIntent(w.read(claim))).To(BeFalse())
		},
		Entry("when it requests less", "ask for at least as much", Asking("1Mi")),
		Entry("when it requests another volumeMode", "has another volumeMode: ask for the same", AskingBlock()),
		Entry("where the other lies in another backend", "has a volume outside of StorageBackend others", InClass("others")),
		Entry("where it is its own source", "is to be a copy of itself", startingFrom("", provisioned.ClaimKind, "copy")),
	)

	It("is left to the populator that knows what it names", func() {
		w := newWorldIn(newMemory())
		claim := Claim(InClass("disks"), startingFrom("example.com", "Dump", "yesterday"))
		w.create(LocalBackend("disks"), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("WaitForPopulator"))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("external populator will provision the volume from Dump yesterday")))
		Expect(w.storage.Len()).To(BeZero())
		w.create(Volume("filled", OfClass("disks"), ReservedTo("data")))
		w.settle()
		expectBound(w, claim, Volume("filled"))
	})
})

// copying is a cluster with a claim that the backend is asked to copy.
func copying() (w *world, source, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w = newWorldIn(newMemory())
	source, claim = w.boundClaim(), copyOf("data")
	w.create(claim)
	w.storage.FailNext(backend.InProgress.Errorf("copying"))
	_ = w.round()
	Expect(w.condition(claim).Message).To(Equal("copying"))
	w.get(source)
	Expect(source.Finalizers).To(ContainElement(datasource.CloningProtection))
	w.newEvents()
	return w, source, claim
}

// removeByForce removes a claim with its finalizers, as a person may.
func removeByForce(w *world, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.get(claim)
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = nil })
	w.delete(claim)
}

// withoutRecord removes what is recorded of a claim's source.
func withoutRecord(w *world, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.get(claim)
	provisioned.ClearRecords(claim)
	Expect(w.direct.Status().Update(GinkgoT().Context(), claim)).To(Succeed())
}

func copyOf(source string, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	basics := []func(*corev1.PersistentVolumeClaim){ClaimNamed("copy"), InClass("disks"), startingFrom("", provisioned.ClaimKind, source)}
	return Claim(append(basics, options...)...)
}

func startingFrom(group, kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To(group), Kind: kind, Name: name}
	}
}

// showingClaim is a cache that shows a claim as it was.
type showingClaim struct {
	client.Client
	claim *corev1.PersistentVolumeClaim
}

func (s showingClaim) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if claim, is := into.(*corev1.PersistentVolumeClaim); is && key == client.ObjectKeyFromObject(s.claim) {
		s.claim.DeepCopyInto(claim)
		return nil
	}
	return s.Client.Get(ctx, key, into, options...)
}
