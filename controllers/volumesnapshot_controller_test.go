package controllers

import (
	"context"
	"errors"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumesnapshot"
	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

var _ = Describe("A VolumeSnapshot that Stowage binds", func() {
	It("gets a content and, with it, the snapshot", func() {
		w, claim, snapshot := toBeBound()

		w.settleBinding()

		content := contentOf(w, snapshot)
		Expect(content.Finalizers).To(ConsistOf(snapshots.ContentProtection))
		Expect(content.Spec.VolumeSnapshotRef).To(And(HaveField("UID", snapshot.UID), HaveField("Kind", "VolumeSnapshot"), HaveField("Name", snapshot.Name)))
		Expect(content.Spec.SourceVolumeMode).To(HaveValue(Equal(corev1.PersistentVolumeFilesystem)))
		Expect(*content.Spec.VolumeSnapshotClassName).To(Equal("cold"))
		expectReady(w, snapshot)
		Expect(snapshot.Status.RestoreSize.String()).To(Equal("1Gi"))
		Expect(snapshot.Status.CreationTime.UnixNano()).To(BeEquivalentTo(1e9))
		Expect(snapshot.Finalizers).To(ConsistOf(snapshots.SourceProtection, snapshots.BoundProtection))
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
		Expect(w.newEvents()).To(ContainElements(HavePrefix("Normal CreatingSnapshot"), HavePrefix("Normal SnapshotCreated"), HavePrefix("Normal SnapshotReady")))
	})

	It("is written no more once it is ready", func() {
		w, _, snapshot := bound()
		written := w.written

		Expect(w.reconcileBinding()).To(Succeed())

		Expect(w.written).To(Equal(written))
		expectReady(w, snapshot)
	})

	It("gets the default class of its driver", func() {
		w, _, snapshot := toBeBound(func(snapshot *snapshotv1.VolumeSnapshot) { snapshot.Spec.VolumeSnapshotClassName = nil })
		other := snapshotClass()
		other.Name, other.Driver = "other", "other.example.com"
		metav1.SetMetaDataAnnotation(&other.ObjectMeta, snapshots.DefaultClass, "true")
		w.create(other)
		w.settleBinding()
		w.get(snapshot)
		Expect(*snapshot.Status.Error.Message).To(ContainSubstring("0 VolumeSnapshotClasses of driver"))

		update(w, snapshotClass(), func(class *snapshotv1.VolumeSnapshotClass) {
			metav1.SetMetaDataAnnotation(&class.ObjectMeta, snapshots.DefaultClass, "true")
		})
		w.settleBinding()

		expectReady(w, snapshot)
		Expect(*snapshot.Spec.VolumeSnapshotClassName).To(Equal("cold"))
	})

	DescribeTable("has no content while",
		func(change func(*world, *corev1.PersistentVolumeClaim, *snapshotv1.VolumeSnapshot), reason, says string) {
			w, claim, snapshot := toBeBound()
			change(w, claim, snapshot)

			w.settleBinding()

			w.get(snapshot)
			Expect(*snapshot.Status.Error.Message).To(ContainSubstring(says))
			Expect(*snapshot.Status.ReadyToUse).To(BeFalse())
			Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning " + reason)))
			Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
			Expect(w.storage.Snapshots()).To(BeEmpty())
		},
		Entry("its claim doesn't exist", func(w *world, claim *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			w.removeFinalizers(claim)
			w.delete(claim)
		}, "SnapshotContentCreationFailed", "claim data does not exist"),
		Entry("its claim is being deleted", func(w *world, claim *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			w.delete(claim)
		}, "SnapshotContentCreationFailed", "claim data is being deleted"),
		Entry("its claim is not bound", func(w *world, claim *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			w.get(claim)
			claim.Status.Phase = corev1.ClaimPending
			Expect(w.direct.Status().Update(context.Background(), claim)).To(Succeed())
		}, "SnapshotContentCreationFailed", "claim data is not bound yet"),
		Entry("its claim's volume is another claim's", func(w *world, claim *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			update(w, w.volumeOf(claim), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })
		}, "SnapshotContentCreationFailed", "which is gone, or another claim's"),
		Entry("its class doesn't exist", func(w *world, _ *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			w.delete(snapshotClass())
		}, "GetSnapshotClassFailed", "VolumeSnapshotClass \"cold\" does not exist"),
		Entry("its class is of another driver", func(w *world, _ *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			update(w, snapshotClass(), func(class *snapshotv1.VolumeSnapshotClass) { class.Driver = "other.example.com" })
		}, "SnapshotContentCreationFailed", "is of driver \"other.example.com\""),
		Entry("its class names half a Secret", func(w *world, _ *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			setParameters(w, map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "keys"})
		}, "SnapshotContentCreationFailed", "one of the parameters"),
		Entry("its class has an unknown variable", func(w *world, _ *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			setParameters(w, map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "keys", "csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.name}"})
		}, "SnapshotContentCreationFailed", "has the variable \"volumesnapshot.name\""),
		Entry("its class makes no name", func(w *world, _ *corev1.PersistentVolumeClaim, _ *snapshotv1.VolumeSnapshot) {
			setParameters(w, map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "${volumesnapshot.name}/x", "csi.storage.k8s.io/snapshotter-secret-namespace": "keys"})
		}, "SnapshotContentCreationFailed", "is no name"),
	)

	It("of a driver with its own csi-snapshotter names the Secret that deletes it", func() {
		w, _, snapshot := toBeBound()
		setParameters(w, map[string]string{
			"csi.storage.k8s.io/snapshotter-secret-name":      "keys-${volumesnapshot.name}",
			"csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.namespace}",
		})

		Expect(w.reconcileVolumeSnapshots()).To(Succeed())

		Expect(contentOf(w, snapshot).Annotations).To(And(
			HaveKeyWithValue(snapshots.DeletionSecretName, "keys-snapshot"), HaveKeyWithValue(snapshots.DeletionSecretNamespace, "default")))
	})

	It("keeps its claim until it is ready", func() {
		w, claim, snapshot := toBeBound()
		w.storage.SetUploading(true)
		w.settleBinding()
		w.delete(claim)
		w.settle()
		w.settleBinding()
		Expect(w.read(claim).Finalizers).To(ContainElement(snapshots.ClaimProtection))

		w.storage.SetUploading(false)
		w.settleBinding()

		expectReady(w, snapshot)
		Expect(w.gone(claim)).To(BeTrue())
	})

	It("keeps a claim of which another is being made", func() {
		w, claim, snapshot := toBeBound()
		w.storage.SetUploading(true)
		w.settleBinding()
		other := volumeSnapshot("other")
		w.create(other)
		w.settleBinding()

		w.delete(snapshot)
		w.settleBinding()
		Expect(w.gone(snapshot)).To(BeTrue())
		Expect(w.read(claim).Finalizers).To(ContainElement(snapshots.ClaimProtection))

		w.delete(other)
		w.settleBinding()
		Expect(w.gone(other)).To(BeTrue())
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
	})

	It("is bound to the content that a person made", func() {
		w, _, first := bound()
		content := staticContent("found", *contentOf(w, first).Status.SnapshotHandle)
		content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "found"}
		found := staticSnapshot("found", "found")
		w.create(content, found)

		w.settleBinding()

		w.get(content)
		Expect(content.Spec.VolumeSnapshotRef.UID).To(Equal(found.UID))
		Expect(content.Finalizers).To(ConsistOf(snapshots.ContentProtection))
		expectReady(w, found)
	})

	DescribeTable("takes no content",
		func(made func(w *world, of *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent, reason, says string) {
			w, _, _ := toBeBound()
			found := staticSnapshot("found", "found")
			w.create(found)
			content := made(w, found)
			if content != nil {
				w.create(content)
			}

			w.settleBy(w.reconcileVolumeSnapshots)

			w.get(found)
			Expect(*found.Status.Error.Message).To(ContainSubstring(says))
			Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning " + reason)))
			if content != nil {
				had := content.Spec.VolumeSnapshotRef
				w.get(content)
				Expect(content.Spec.VolumeSnapshotRef).To(Equal(had))
			}
		},
		Entry("that isn't there", func(*world, *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent { return nil },
			"SnapshotContentMissing", "VolumeSnapshotContent found is missing"),
		Entry("that was made for a claim", func(_ *world, of *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
			content := dynamicContent(string(of.UID), "v")
			content.Name, content.Spec.VolumeSnapshotRef.Name = "found", "found"
			return content
		}, "SnapshotContentMismatch", "has no snapshotHandle"),
		Entry("of another namespace", func(*world, *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
			content := staticContent("found", "theirs")
			content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "tenant", Name: "found"}
			return content
		}, "SnapshotContentMisbound", "is bound to a different snapshot"),
		Entry("of an earlier one of its name", func(*world, *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
			content := staticContent("found", "theirs")
			content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "found", UID: "earlier"}
			return content
		}, "SnapshotContentMisbound", "is bound to a different snapshot"),
	)

	It("takes no content that is being deleted", func() {
		w, _, _ := toBeBound()
		content, found := staticContent("found", "theirs"), staticSnapshot("found", "found")
		content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "found"}
		w.create(content, found)
		w.delete(content)

		Expect(w.reconcileVolumeSnapshots()).To(Succeed())

		w.get(found)
		Expect(*found.Status.Error.Message).To(ContainSubstring("is being deleted"))
	})

	It("goes with its content and the snapshot", func() {
		w, claim, snapshot := bound()
		content := contentOf(w, snapshot)

		w.delete(snapshot)
		w.settleBinding()

		Expect(w.gone(snapshot)).To(BeTrue())
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
	})

	It("leaves its content and the snapshot with policy Retain", func() {
		w, _, snapshot := bound()
		content := contentOf(w, snapshot)
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})

		w.delete(snapshot)
		w.settleBinding()

		Expect(w.gone(snapshot)).To(BeTrue())
		w.get(content)
		Expect(content.DeletionTimestamp).To(BeNil())
		Expect(content.Annotations).To(HaveKey(snapshots.BeingDeleted))
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("leaves its content if the policy becomes Retain just then", func() {
		w, _, snapshot := bound()
		content := contentOf(w, snapshot)
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingDeleted, "yes")
		})
		old := content.DeepCopy()
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		w.delete(snapshot)
		w.views.binds.live.Reader = oldState[*snapshotv1.VolumeSnapshotContent]{w, old}

		result, err := w.binds.Reconcile(w.logging(), wake.Request(snapshot))

		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(wake.AfterConflict))
		w.get(content)
		Expect(content.DeletionTimestamp).To(BeNil())
	})

	It("is kept while a claim is restored from it, though the cache doesn't show that", func() {
		w, _, snapshot := bound()
		restored := restoreOf(&snapshotOfVolume{snapshot: snapshot})
		w.create(restored)
		w.views.binds.Client = withoutClaimsOf{w}
		w.delete(snapshot)

		w.settleBinding()

		w.get(snapshot)
		Expect(contentOf(w, snapshot).Annotations).NotTo(HaveKey(snapshots.BeingDeleted))
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning SnapshotDeletePending the snapshot is kept while claim restored")))

		w.removeFinalizers(restored)
		w.delete(restored)
		w.settleBinding()
		Expect(w.gone(snapshot)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("is kept while a claim of another namespace is restored from it, once that has begun", func() {
		w, _, snapshot := bound()
		restored := restoreOf(&snapshotOfVolume{snapshot: snapshot}, inTenant)
		restored.Finalizers = []string{stowagev1alpha1.ProvisioningFinalizer}
		w.create(restored)
		text, _, err := provisioned.Restore{Attempt: 1, Namespace: "default", Snapshot: "handle"}.Text()
		Expect(err).NotTo(HaveOccurred())
		restored.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: stowagev1alpha1.RestoreCondition, Status: corev1.ConditionTrue, Message: text}}
		Expect(w.direct.Status().Update(context.Background(), restored)).To(Succeed())
		w.delete(snapshot)

		w.settleBinding()

		w.get(snapshot)
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning SnapshotDeletePending the snapshot is kept while claim tenant/restored")))
	})

	It("isn't kept by a claim of another namespace that only names it", func() {
		w, _, snapshot := bound()
		w.create(restoreOf(&snapshotOfVolume{snapshot: snapshot}, inTenant))
		w.delete(snapshot)

		w.settleBinding()

		Expect(w.gone(snapshot)).To(BeTrue())
	})

	It("gets no second content after the first is lost", func() {
		w, _, snapshot := bound()
		content := contentOf(w, snapshot)
		w.removeFinalizers(content)
		w.delete(content)

		w.settleBinding()

		w.get(snapshot)
		Expect(*snapshot.Status.ReadyToUse).To(BeFalse())
		Expect(*snapshot.Status.Error.Message).To(ContainSubstring("is not made again, with the data of another time"))
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))

		w.delete(snapshot)
		w.settleBinding()
		Expect(w.gone(snapshot)).To(BeTrue())
	})

	It("that was made again under its name leaves the content of the first", func() {
		w, _, first := bound()
		content := contentOf(w, first)
		w.removeFinalizers(first)
		w.delete(first)
		second := volumeSnapshot("snapshot")
		w.create(second)
		w.settleBinding()
		expectReady(w, second)
		Expect(contentOf(w, second).UID).NotTo(Equal(content.UID))

		w.delete(second)
		w.settleBinding()

		Expect(w.gone(second)).To(BeTrue())
		w.get(content)
		Expect(content.DeletionTimestamp).To(BeNil())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("leaves the content that a person made again for another", func() {
		w, _, first := bound()
		handle := *contentOf(w, first).Status.SnapshotHandle
		content, found := staticContent("found", handle), staticSnapshot("found", "found")
		content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "found"}
		w.create(content, found)
		w.settleBinding()
		expectReady(w, found)
		w.get(content)
		w.removeFinalizers(content)
		w.delete(content)
		again := staticContent("found", handle)
		again.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "found", UID: "another"}
		w.create(again)

		w.delete(found)
		w.settleBinding()

		Expect(w.gone(found)).To(BeTrue())
		w.get(again)
		Expect(again.DeletionTimestamp).To(BeNil())
		Expect(again.Annotations).NotTo(HaveKey(snapshots.BeingDeleted))
	})

	It("that is gone gets no content by an old cache", func() {
		w, _, snapshot := toBeBound()
		old := snapshot.DeepCopy()
		w.delete(snapshot)
		w.views.binds.Client = oldState[*snapshotv1.VolumeSnapshot]{w, old}

		_, err := w.binds.Reconcile(w.logging(), wake.Request(old))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
	})

	DescribeTable("leaves no content and no claim if it goes just before its content is made",
		func(then func(*world, *snapshotv1.VolumeSnapshot)) {
			w, claim, snapshot := toBeBound()
			w.views.binds.Client = beforeCreation{w.views.binds.Client, func() {
				w.delete(snapshot)
				then(w, snapshot)
			}}
			_, err := w.binds.Reconcile(w.logging(), wake.Request(snapshot))
			Expect(err).NotTo(HaveOccurred())

			w.settleBinding()

			Expect(w.gone(snapshot)).To(BeTrue())
			Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
			Expect(w.storage.Snapshots()).To(BeEmpty())
			Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
		},
		Entry("and is there yet", func(*world, *snapshotv1.VolumeSnapshot) {}),
		Entry("as another manager that leads lets it go", func(w *world, snapshot *snapshotv1.VolumeSnapshot) {
			deps := w.dependencies(newView(w))
			other := volumesnapshot.New(deps, snapshotbinding.New(deps.Client, deps.Live))
			_, err := other.Reconcile(w.logging(), wake.Request(snapshot))
			Expect(err).NotTo(HaveOccurred())
			Expect(w.gone(snapshot)).To(BeTrue())
			w.faults = map[int]fault{w.written + 1: contended, w.written + 3: contended}
		}),
	)

	It("that snapshot-controller began is carried on, with the same content", func() {
		w, claim, snapshot := toBeBound()
		content := dynamicContent(string(snapshot.UID), w.volumeOf(claim).Spec.CSI.VolumeHandle)
		content.Finalizers = nil
		w.create(content)
		update(w, snapshot, func(snapshot *snapshotv1.VolumeSnapshot) { snapshot.Finalizers = []string{snapshots.SourceProtection} })
		w.protectForSnapshots(w.read(claim))

		w.settleBinding()

		expectReady(w, snapshot)
		Expect(contentOf(w, snapshot).UID).To(Equal(content.UID))
		Expect(contentOf(w, snapshot).Finalizers).To(ConsistOf(snapshots.ContentProtection))
		Expect(snapshot.Finalizers).To(ConsistOf(snapshots.SourceProtection, snapshots.BoundProtection))
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
	})

	It("of a group is left alone until its group binds it", func() {
		w, _, snapshot := toBeBound(func(snapshot *snapshotv1.VolumeSnapshot) {
			snapshot.OwnerReferences = []metav1.OwnerReference{{APIVersion: "groupsnapshot.storage.k8s.io/v1", Kind: "VolumeGroupSnapshot", Name: "group", UID: "u"}}
		})

		w.settleBinding()

		w.get(snapshot)
		Expect(snapshot.Status).To(BeNil())
		Expect(snapshot.Finalizers).To(BeEmpty())
	})

	DescribeTable("leaks nothing and loses nothing at a crash",
		func(of fault) {
			for number := range 8 {
				w, claim, snapshot := toBeBound()
				w.faults = map[int]fault{w.written + number: of}
				w.settleBindingAfterCrashes()
				expectReady(w, snapshot)
				Expect(w.storage.Snapshots()).To(HaveLen(1), "write %d", number)
				Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection), "write %d", number)

				w.delete(snapshot)
				w.faults = map[int]fault{w.written + number: of}
				w.settleBindingAfterCrashes()
				Expect(w.gone(snapshot)).To(BeTrue(), "write %d", number)
				Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty(), "write %d", number)
				Expect(w.storage.Snapshots()).To(BeEmpty(), "write %d", number)
				w.empty()
			}
		},
		Entry("before a write", lost), Entry("after a write", unanswered), Entry("while another writes", contended),
	)

	DescribeTable("leaves nothing if it is deleted while it is made",
		func(passes int) {
			w, claim, snapshot := toBeBound()
			for range passes {
				_ = w.reconcileBinding()
			}
			w.delete(snapshot)

			w.settleBinding()

			Expect(w.gone(snapshot)).To(BeTrue())
			Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
			Expect(w.storage.Snapshots()).To(BeEmpty())
			Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
		},
		Entry("at once", 0), Entry("after a pass", 1), Entry("after two passes", 2),
	)

	It("wakes by its content and its claim in a manager that runs", func() {
		w, claim, snapshot := toBeBound()
		mgr := newManager(reconciler.ClusterScope)
		deps := w.dependencies(w.views.binds)
		deps.Client, deps.Live = mgr.GetClient(), mgr.GetAPIReader()
		Expect(index.Add(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
		Expect(index.AddContents(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
		Expect(index.AddSnapshots(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
		Expect(volumesnapshot.New(deps, snapshotbinding.New(deps.Client, deps.Live)).SetupWithManager(mgr)).To(Succeed())
		Expect(volumesnapshotcontent.New(deps).SetupWithManager(mgr)).To(Succeed())

		runManager(mgr)

		Eventually(func(g Gomega) {
			w.get(snapshot)
			g.Expect(snapshots.IsReady(snapshot)).To(BeTrue())
			g.Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
		}).Should(Succeed())
		w.delete(snapshot)
		Eventually(func() bool { return w.gone(snapshot) }).Should(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})
})

// toBeBound is a cluster with a volume of the driver, and a VolumeSnapshot of its claim.
func toBeBound(options ...func(*snapshotv1.VolumeSnapshot)) (*world, *corev1.PersistentVolumeClaim, *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	w, claim, _ := madeByDriver()
	snapshot := volumeSnapshot("snapshot")
	for _, option := range options {
		option(snapshot)
	}
	w.create(snapshotClass(), snapshot)
	return w, claim, snapshot
}

// bound is the same cluster with the snapshot.
func bound() (*world, *corev1.PersistentVolumeClaim, *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	w, claim, snapshot := toBeBound()
	w.settleBinding()
	expectReady(w, snapshot)
	w.newEvents()
	return w, claim, snapshot
}

// volumeSnapshot is that of the claim "data".
func volumeSnapshot(name string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: new("cold"), Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: new("data")},
		},
	}
}

// staticSnapshot is one of the content that it names.
func staticSnapshot(name, content string) *snapshotv1.VolumeSnapshot {
	snapshot := volumeSnapshot(name)
	snapshot.Spec = snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content}}
	return snapshot
}

func contentOf(w *world, snapshot *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	GinkgoHelper()
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(snapshot.UID)}}
	w.get(content)
	return content
}

func expectReady(w *world, snapshot *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	w.get(snapshot)
	Expect(snapshot.Status).NotTo(BeNil())
	Expect(snapshot.Status.Error).To(BeNil())
	Expect(snapshot.Status.ReadyToUse).To(HaveValue(BeTrue()))
	Expect(snapshot.Status.BoundVolumeSnapshotContentName).NotTo(BeNil())
}

// setParameters gives the class these parameters alone.
func setParameters(w *world, parameters map[string]string) {
	GinkgoHelper()
	update(w, snapshotClass(), func(class *snapshotv1.VolumeSnapshotClass) { class.Parameters = parameters })
}

func (w *world) reconcileVolumeSnapshots() error {
	var failures []error
	for _, object := range w.all(&snapshotv1.VolumeSnapshotList{}) {
		_, err := w.binds.Reconcile(w.logging(), wake.Request(object))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// reconcileBinding runs the reconcilers of VolumeSnapshots and of their contents once over all objects.
func (w *world) reconcileBinding() error {
	return errors.Join(w.reconcileVolumeSnapshots(), w.reconcileSnapshots())
}

func (w *world) settleBinding() {
	GinkgoHelper()
	w.settleBy(w.reconcileBinding)
}

func (w *world) settleBindingAfterCrashes() {
	GinkgoHelper()
	w.settleAfterCrashes(w.reconcileBinding)
}

// beforeCreation is a client that does something before it creates an object.
type beforeCreation struct {
	client.Client
	do func()
}

func (c beforeCreation) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.do()
	return c.Client.Create(ctx, object, options...)
}

// withoutClaimsOf is a cache whose lists have no claim yet.
type withoutClaimsOf struct{ client.Client }

func (c withoutClaimsOf) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.PersistentVolumeClaimList); is {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}
