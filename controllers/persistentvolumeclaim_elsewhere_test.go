package controllers

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/datasource"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// tenant is a namespace that copies what the namespace default has.
const tenant = "tenant"

var _ = Describe("A claim whose source is in another namespace", func() {
	It("is restored from a VolumeSnapshot there, once a ReferenceGrant lets it", func() {
		w, s := withSnapshot(reconciler.ClassesScope)
		// With the rights that the manager is granted, also to read ReferenceGrants.
		w.views.claims.live.Reader = managers[reconciler.ClassesScope]
		claim := restoreOf(s, inTenant, requestedFrom(csiDriver))
		w.create(claim)
		w.settle()
		Expect(w.newEvents()).To(ContainElement(ContainSubstring(
			"no ReferenceGrant of namespace default lets claims of namespace tenant use its VolumeSnapshot snapshot: create one there")))
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())

		w.create(granting(provisioned.SnapshotGroup, provisioned.SnapshotKind))
		w.settle()

		Expect(w.gone(Volume(provisioned.VolumeID(claim)))).To(BeFalse())
		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(Equal(backend.Source{Snapshot: s.handle(), Namespace: "default"})))
	})

	It("gets a copy of a claim there, once a ReferenceGrant lets it", func() {
		w := newWorldIn(newMemory())
		source, claim := w.boundClaim(), copyOf("data", inTenant)
		w.create(claim)
		w.settle()
		Expect(w.condition(claim).Message).To(ContainSubstring("lets claims of namespace tenant use its PersistentVolumeClaim data"))

		w.create(granting("", provisioned.ClaimKind))
		w.settle()

		Expect(w.read(claim).Status.Phase).To(Equal(corev1.ClaimBound))
		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(And(
			HaveField("ID", provisioned.VolumeID(source)), HaveField("Namespace", "default"), HaveField("Claim.Namespace", "default"))))
	})

	It("learns nothing of what there is while no ReferenceGrant lets it", func() {
		w := newWorldIn(newMemory())
		there, nowhere := copyOf("data", inTenant), copyOf("data", inTenant, ClaimNamed("other"))
		w.boundClaim()
		nowhere.Spec.DataSourceRef.Name = "nothing"
		w.create(there, nowhere)

		w.settle()

		for claim, name := range map[*corev1.PersistentVolumeClaim]string{there: "data", nowhere: "nothing"} {
			Expect(w.condition(claim).Message).To(ContainSubstring("use its PersistentVolumeClaim " + name + ": create one there, or create the claim in that namespace"))
		}
	})

	DescribeTable("isn't made by a ReferenceGrant", func(change func(*gatewayv1beta1.ReferenceGrant)) {
		w := newWorldIn(newMemory())
		w.boundClaim()
		claim, grant := copyOf("data", inTenant), granting("", provisioned.ClaimKind)
		change(grant)
		w.create(claim, grant)

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("no ReferenceGrant of namespace default lets"))
	},
		Entry("of the claim's own namespace", func(grant *gatewayv1beta1.ReferenceGrant) { grant.Namespace = tenant }),
		Entry("from another namespace", func(grant *gatewayv1beta1.ReferenceGrant) { grant.Spec.From[0].Namespace = "stranger" }),
		Entry("from another kind", func(grant *gatewayv1beta1.ReferenceGrant) { grant.Spec.From[0].Kind = "Pod" }),
		Entry("from another group", func(grant *gatewayv1beta1.ReferenceGrant) { grant.Spec.From[0].Group = "example.com" }),
		Entry("to another kind", func(grant *gatewayv1beta1.ReferenceGrant) { grant.Spec.To[0].Kind = "Secret" }),
		Entry("to another group", func(grant *gatewayv1beta1.ReferenceGrant) { grant.Spec.To[0].Group = "example.com" }),
		Entry("to another name", func(grant *gatewayv1beta1.ReferenceGrant) {
			grant.Spec.To[0].Name = new(gatewayv1beta1.ObjectName("other"))
		}),
	)

	It("is made though the ReferenceGrant is deleted once the copy was begun", func() {
		w, _, claim := copyingElsewhere()
		w.delete(granting("", provisioned.ClaimKind))

		w.settle()

		Expect(w.read(claim).Status.Phase).To(Equal(corev1.ClaimBound))
	})

	It("keeps its source until it is made", func() {
		w, source, claim := copyingElsewhere()
		w.delete(source)
		_, err := w.claims.Reconcile(context.Background(), wake.Request(source))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("ClaimInUse the claim is kept while its volume is copied for claim tenant/copy")))

		w.settle()

		Expect(w.read(claim).Status.Phase).To(Equal(corev1.ClaimBound))
		w.settle()
		Expect(w.gone(source)).To(BeTrue())
	})

	It("keeps its source though the cache doesn't show it", func() {
		w, source, _ := copyingElsewhere()
		w.delete(source)
		w.views.claims.Client = showingNoCopies{w.views.claims.Client}

		_, err := w.claims.Reconcile(context.Background(), wake.Request(source))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.gone(source)).To(BeFalse())
	})

	It("lets its source go when it is deleted itself", func() {
		w, source, claim := copyingElsewhere()
		w.delete(source)
		w.delete(claim)

		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		w.settle()
		Expect(w.gone(source)).To(BeTrue())
	})

	It("is found by a grant behind many others", func() {
		w := newWorldIn(newMemory())
		w.boundClaim()
		for i := range 60 {
			other := granting("", provisioned.ClaimKind)
			other.Name, other.Spec.To[0].Name = fmt.Sprintf("another-%d", i), new(gatewayv1beta1.ObjectName("other"))
			w.create(other)
		}
		claim := copyOf("data", inTenant)
		w.create(claim, granting("", provisioned.ClaimKind))

		w.settle()

		Expect(w.read(claim).Status.Phase).To(Equal(corev1.ClaimBound))
	})

	It("doesn't keep a source that it may not have", func() {
		w := newWorldIn(newMemory())
		source := w.boundClaim()
		foreign := copyOf("data", inTenant, forging(`{"backend":"disks","attempt":1,"records":true}`))
		w.create(foreign, copyOf("data", ClaimNamed("own")))
		w.settle()

		w.delete(source)
		w.settle()

		Expect(w.gone(source)).To(BeTrue())
	})
})

// showingNoCopies is a cache that doesn't show claims yet, when it is asked for lists of them.
type showingNoCopies struct{ client.Client }

func (s showingNoCopies) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.PersistentVolumeClaimList); is {
		return nil
	}
	return s.Client.List(ctx, list, options...)
}

// inTenant has a claim refer from the tenant's namespace to that of its source.
func inTenant(claim *corev1.PersistentVolumeClaim) {
	claim.Namespace, claim.Spec.DataSourceRef.Namespace = tenant, new("default")
}

// granting lets claims of the tenant begin as copies of what the namespace default has of a kind.
func granting(group, kind string) *gatewayv1beta1.ReferenceGrant {
	return &gatewayv1beta1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "copies"},
		Spec: gatewayv1beta1.ReferenceGrantSpec{
			From: []gatewayv1beta1.ReferenceGrantFrom{{Kind: provisioned.ClaimKind, Namespace: tenant}},
			To:   []gatewayv1beta1.ReferenceGrantTo{{Group: gatewayv1beta1.Group(group), Kind: gatewayv1beta1.Kind(kind)}},
		},
	}
}

// copyingElsewhere is a cluster with a claim that the backend is asked to copy for another namespace.
func copyingElsewhere() (w *world, source, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w = newWorldIn(newMemory())
	source, claim = w.boundClaim(), copyOf("data", inTenant)
	w.create(claim, granting("", provisioned.ClaimKind))
	w.storage.FailNext(backend.InProgress.Errorf("copying"))
	_ = w.round()
	Expect(w.condition(claim).Message).To(Equal("copying"))
	w.get(source)
	Expect(source.Finalizers).To(ContainElement(datasource.CloningProtection))
	Expect(source.Annotations).To(HaveKeyWithValue("stowage.dev/copied-for", "tenant/copy/"+string(claim.UID)))
	w.newEvents()
	return w, source, claim
}
