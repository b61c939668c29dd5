package controllers

import (
	"context"
	"errors"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("The claim of VolumeSnapshots that are deleted while they are made", func() {
	It("is released though each is still there as the other looks", func() {
		w, first, second := twoInTheMaking()
		w.endContents(first, second)
		w.views.binds.Client = &beforePatch{w.views.binds.Client, first.Name, func() { w.reconcileVolumeSnapshot(second) }}

		w.reconcileVolumeSnapshot(first)

		w.expectReleased(first, second)
	})

	It("is released though the cache still shows another", func() {
		w, first, second := twoInTheMaking()
		w.endContents(first, second)
		w.reconcileVolumeSnapshot(second)
		w.protectForSnapshots(sourceOf(w, first))
		w.views.binds.Client = showing{w.views.binds.Client, volumeSnapshot("another")}

		w.reconcileVolumeSnapshot(first)

		w.expectReleased(first, second)
	})

	It("is released though the cache doesn't show yet that it is kept", func() {
		w, first, second := twoInTheMaking()
		w.endContents(first, second)
		free := sourceOf(w, first)
		free.Finalizers = nil
		w.views.binds.Client = oldState[*corev1.PersistentVolumeClaim]{w.views.binds.Client, free}

		Expect(w.reconcileVolumeSnapshots()).To(Succeed())

		w.expectReleased(first, second)
	})

	It("is kept while the content of one is still there", func() {
		w, first, second := twoInTheMaking()
		w.delete(second)
		w.endContents(first)

		w.reconcileVolumeSnapshot(first)

		Expect(w.gone(first)).To(BeTrue())
		Expect(sourceOf(w, first).Finalizers).To(ContainElement(snapshots.ClaimProtection))
		w.settleBinding()
		w.expectReleased(second)
	})

	It("is released though the content of one stays, with policy Retain", func() {
		w, first, second := twoInTheMaking()
		for _, snapshot := range []*snapshotv1.VolumeSnapshot{first, second} {
			update(w, contentOf(w, snapshot), func(content *snapshotv1.VolumeSnapshotContent) {
				content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
			})
			w.delete(snapshot)
		}
		w.views.binds.Client = &beforePatch{w.views.binds.Client, first.Name, func() { w.reconcileVolumeSnapshot(second) }}

		w.reconcileVolumeSnapshot(first)

		w.expectReleased(first, second)
	})

	It("is released though a finalizer of another program keeps one", func() {
		w, first, second := twoInTheMaking()
		update(w, second, func(snapshot *snapshotv1.VolumeSnapshot) {
			snapshot.Finalizers = append(snapshot.Finalizers, "example.com/kept")
		})
		w.delete(first)
		w.delete(second)

		w.settleBinding()

		Expect(w.gone(second)).To(BeFalse())
		w.expectReleased(first)

		By("reading no content of it: a tenant may leave thousands like that")
		w.protectForSnapshots(sourceOf(w, first))
		kept := snapshotbinding.New(w.views.binds, withoutContents{w.reads})
		Expect(kept.Release(context.Background(), "another", client.ObjectKeyFromObject(sourceOf(w, first)))).To(Succeed())
		w.expectReleased(first)
	})
})

// twoInTheMaking is a cluster with two VolumeSnapshots of a claim that the storage makes.
func twoInTheMaking() (w *world, first, second *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	w, _, first = toBeBound()
	second = volumeSnapshot("second")
	w.create(second)
	w.storage.SetUploading(true)
	w.settleBinding()
	Expect(sourceOf(w, first).Finalizers).To(ContainElement(snapshots.ClaimProtection))
	return w, first, second
}

// sourceOf is the claim that a VolumeSnapshot is made of.
func sourceOf(w *world, snapshot *snapshotv1.VolumeSnapshot) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	return w.read(Claim(ClaimNamed(snapshots.SourceClaim(snapshot))))
}

// endContents deletes VolumeSnapshots, and has their contents end before these notice it.
func (w *world) endContents(of ...*snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	for _, snapshot := range of {
		w.delete(snapshot)
		w.reconcileVolumeSnapshot(snapshot)
		content := contentOf(w, snapshot)
		Eventually(func() bool {
			_, err := w.snapshots.Reconcile(w.logging(), wake.Request(content))
			Expect(err).NotTo(HaveOccurred())
			return w.gone(content)
		}).Should(BeTrue())
	}
}

// protectForSnapshots keeps a claim as for a VolumeSnapshot that is made of it.
func (w *world) protectForSnapshots(claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
		claim.Finalizers = append(claim.Finalizers, snapshots.ClaimProtection)
	})
}

func (w *world) reconcileVolumeSnapshot(snapshot *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	_, err := w.binds.Reconcile(w.logging(), wake.Request(snapshot))
	Expect(err).NotTo(HaveOccurred())
}

// expectReleased expects that VolumeSnapshots of a claim are gone, and that none keeps it.
func (w *world) expectReleased(gone ...*snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	for _, snapshot := range gone {
		Expect(w.gone(snapshot)).To(BeTrue(), snapshot.Name)
		expectFree(w, sourceOf(w, snapshot))
	}
}

// beforePatch is a client that does something before it first patches the object of a name.
type beforePatch struct {
	client.Client
	of string
	do func()
}

func (c *beforePatch) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if do := c.do; do != nil && object.GetName() == c.of {
		c.do = nil
		do()
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

// withoutContents is an API server that can't be asked for contents.
type withoutContents struct{ client.Reader }

func (r withoutContents) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*snapshotv1.VolumeSnapshotContent); is {
		return errors.New("a content was read")
	}
	return r.Reader.Get(ctx, key, object, options...)
}
