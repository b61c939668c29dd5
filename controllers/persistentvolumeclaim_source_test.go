package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
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

	It("gets what was begun for it, although the other went in between", func() {
		w := newWorldIn(newMemory())
		source, claim := w.boundClaim(), copyOf("data")
		w.create(claim)
		w.storage.FailNext(backend.InProgress.Errorf("copying"))
		_ = w.round()
		Expect(w.condition(claim).Message).To(Equal("copying"))
		w.storage.Begin(provisioned.VolumeID(claim), backend.Request{Claim: provisioning.RequestFrom(claim).Claim, Capacity: provisioning.RequestFrom(claim).Capacity})

		w.delete(source)
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("gets no empty volume where the other went before the copy began", func() {
		w := newWorldIn(newMemory())
		source, claim := w.boundClaim(), copyOf("data")
		w.create(claim)
		w.storage.FailNext(backend.InProgress.Errorf("about to copy"))
		_ = w.round()

		w.delete(source)
		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring(`there is no volume "" to copy`))
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

func copyOf(source string, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	basics := []func(*corev1.PersistentVolumeClaim){ClaimNamed("copy"), InClass("disks"), startingFrom("", provisioned.ClaimKind, source)}
	return Claim(append(basics, options...)...)
}

func startingFrom(group, kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To(group), Kind: kind, Name: name}
	}
}
