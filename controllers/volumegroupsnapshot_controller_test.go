package controllers

import (
	"context"
	"errors"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshot"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshotcontent"
	"github.com/stowage-dev/stowage/controllers/volumesnapshot"
	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A VolumeGroupSnapshot that Stowage binds", func() {
	It("gets a content and, with it, a VolumeSnapshot and a content of each claim", func() {
		w, claims, group := toBeGroupBound()

		w.settleGroupBinding()

		content := groupContentOf(w, group)
		Expect(content.Finalizers).To(ConsistOf(snapshots.GroupContentProtection))
		Expect(content.Spec.VolumeGroupSnapshotRef).To(And(HaveField("UID", group.UID), HaveField("Kind", "VolumeGroupSnapshot"), HaveField("Name", "shop")))
		Expect(*content.Spec.VolumeGroupSnapshotClassName).To(Equal("cold"))
		expectGroupReady(w, group)
		Expect(group.Status.CreationTime.Unix()).To(BeEquivalentTo(1))
		Expect(group.Finalizers).To(ConsistOf(snapshots.GroupBoundProtection))
		var of []string
		for _, member := range membersIn(w) {
			expectReady(w, member)
			Expect(member.Finalizers).To(ConsistOf(snapshots.GroupMemberProtection, snapshots.SourceProtection))
			Expect(member.OwnerReferences).To(ConsistOf(snapshots.OwnedBy(group)))
			Expect(*member.Status.VolumeGroupSnapshotName).To(Equal("shop"))
			Expect(member.Status.RestoreSize.String()).To(Equal("1Gi"))
			single := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: *member.Status.BoundVolumeSnapshotContentName}}
			w.get(single)
			Expect(single.Finalizers).To(ConsistOf(snapshots.ContentProtection))
			Expect(single.Annotations).To(Equal(map[string]string{snapshots.GroupMember: *content.Status.VolumeGroupSnapshotHandle}))
			Expect(*single.Status.VolumeGroupSnapshotHandle).To(Equal(*content.Status.VolumeGroupSnapshotHandle))
			Expect(single.Spec.SourceVolumeMode).To(HaveValue(Equal(corev1.PersistentVolumeFilesystem)))
			of = append(of, *member.Spec.Source.PersistentVolumeClaimName)
		}
		Expect(of).To(ConsistOf("data", "log"))
		expectFree(w, claims...)
		Expect(w.newEvents()).To(ContainElements(HavePrefix("Normal CreatingGroupSnapshot"), HavePrefix("Normal GroupSnapshotCreated"), HavePrefix("Normal GroupSnapshotReady")))
	})

	It("is written no more once it is ready", func() {
		w, _, group := groupBound()
		written := w.written

		Expect(w.reconcileGroupBinding()).To(Succeed())

		Expect(w.written).To(Equal(written))
		expectGroupReady(w, group)
	})

	It("selects claims by expressions, too, and leaves those of other namespaces", func() {
		w, claims, group := toBeGroupBound(func(group *groupsnapshotv1.VolumeGroupSnapshot) {
			group.Spec.Source.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
		})
		w.create(Claim(ClaimNamed("other"), InClass("kept")), Claim(InClass("kept"), labelled, func(claim *corev1.PersistentVolumeClaim) { claim.Namespace = tenant }))

		w.settleGroupBinding()

		expectGroupReady(w, group)
		Expect(groupContentOf(w, group).Spec.Source.VolumeHandles).To(ConsistOf(
			w.volumeOf(claims[0]).Spec.CSI.VolumeHandle, w.volumeOf(claims[1]).Spec.CSI.VolumeHandle))
	})

	It("gets the default class of its driver", func() {
		w, _, group := toBeGroupBound(func(group *groupsnapshotv1.VolumeGroupSnapshot) { group.Spec.VolumeGroupSnapshotClassName = nil })
		other := groupClass()
		other.Name, other.Driver = "other", "other.example.com"
		metav1.SetMetaDataAnnotation(&other.ObjectMeta, snapshots.GroupDefaultClass, "true")
		w.create(other)
		w.settleGroupBinding()
		w.get(group)
		Expect(*group.Status.Error.Message).To(ContainSubstring("0 VolumeGroupSnapshotClasses of driver"))

		update(w, groupClass(), func(class *groupsnapshotv1.VolumeGroupSnapshotClass) {
			metav1.SetMetaDataAnnotation(&class.ObjectMeta, snapshots.GroupDefaultClass, "true")
		})
		w.settleGroupBinding()

		expectGroupReady(w, group)
		Expect(*group.Spec.VolumeGroupSnapshotClassName).To(Equal("cold"))
	})

	DescribeTable("has no content while",
		func(change func(*world, *corev1.PersistentVolumeClaim, *groupsnapshotv1.VolumeGroupSnapshot), reason, says string) {
			w, claims, group := toBeGroupBound()
			change(w, claims[1], group)

			w.settleGroupBinding()

			w.get(group)
			Expect(*group.Status.Error.Message).To(ContainSubstring(says))
			Expect(*group.Status.ReadyToUse).To(BeFalse())
			Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning " + reason)))
			Expect(w.all(&groupsnapshotv1.VolumeGroupSnapshotContentList{})).To(BeEmpty())
			Expect(w.storage.Snapshots()).To(BeEmpty())
		},
		Entry("no claim has its labels", func(w *world, _ *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			for _, claim := range w.all(&corev1.PersistentVolumeClaimList{}) {
				update(w, claim.(*corev1.PersistentVolumeClaim), func(claim *corev1.PersistentVolumeClaim) { claim.Labels = nil })
			}
		}, "GroupSnapshotContentCreationFailed", "no claim of the namespace has the labels app=shop"),
		Entry("one of its claims is being deleted", func(w *world, claim *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			w.delete(claim)
		}, "GroupSnapshotContentCreationFailed", "claim log is being deleted"),
		Entry("one of its claims is not bound", func(w *world, claim *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			w.get(claim)
			claim.Status.Phase = corev1.ClaimPending
			Expect(w.direct.Status().Update(context.Background(), claim)).To(Succeed())
		}, "GroupSnapshotContentCreationFailed", "claim log is not bound yet"),
		Entry("a claim's volume is another claim's", func(w *world, claim *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			update(w, w.volumeOf(claim), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })
		}, "GroupSnapshotContentCreationFailed", "which is gone, or another claim's"),
		Entry("its class doesn't exist", func(w *world, _ *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			w.delete(groupClass())
		}, "GetGroupSnapshotClassFailed", "VolumeGroupSnapshotClass cold does not exist"),
		Entry("its class is of another driver", func(w *world, _ *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			class := groupClass()
			w.delete(groupClass())
			class.Driver = "other.example.com"
			w.create(class)
		}, "GroupSnapshotContentCreationFailed", "is of driver \"other.example.com\""),
		Entry("its class names half a Secret", func(w *world, _ *corev1.PersistentVolumeClaim, _ *groupsnapshotv1.VolumeGroupSnapshot) {
			class := groupClass()
			w.delete(groupClass())
			class.Parameters = map[string]string{"csi.storage.k8s.io/group-snapshotter-secret-name": "keys"}
			w.create(class)
		}, "GroupSnapshotContentCreationFailed", "one of the parameters"),
	)

	It("of a driver with its own csi-snapshotter names the Secret that deletes it, on its members, too", func() {
		w, _, group := toBeGroupBound()
		w.delete(groupClass())
		class := groupClass()
		class.Parameters = map[string]string{
			"csi.storage.k8s.io/group-snapshotter-secret-name":      "keys-${volumegroupsnapshot.name}",
			"csi.storage.k8s.io/group-snapshotter-secret-namespace": "${volumegroupsnapshot.namespace}",
		}
		w.create(class)
		Expect(w.reconcileVolumeGroupSnapshots()).To(Succeed())
		content := groupContentOf(w, group)
		Expect(content.Annotations).To(And(
			HaveKeyWithValue(snapshots.GroupDeletionSecretName, "keys-shop"), HaveKeyWithValue(snapshots.GroupDeletionSecretNamespace, "default")))

		w.recordGroup(content, "first", "second")
		Expect(w.reconcileVolumeGroupSnapshots()).To(Succeed())

		for _, single := range w.all(&snapshotv1.VolumeSnapshotContentList{}) {
			Expect(single.GetAnnotations()).To(And(
				HaveKeyWithValue(snapshots.DeletionSecretName, "keys-shop"), HaveKeyWithValue(snapshots.DeletionSecretNamespace, "default")))
		}
	})

	It("keeps its claims until it is ready, though a VolumeSnapshot of one is ready before", func() {
		w, claims, group := toBeGroupBound()
		w.storage.SetUploading(true)
		w.settleBy(w.reconcileVolumeGroupSnapshots)
		single := volumeSnapshot("single")
		w.create(snapshotClass(), single)
		w.storage.SetUploading(false)
		w.settleBinding()
		expectReady(w, single)
		for _, claim := range claims {
			Expect(w.read(claim).Finalizers).To(ContainElement(snapshots.ClaimProtection))
			w.delete(claim)
		}

		w.settleGroupBinding()

		expectGroupReady(w, group)
		w.settle()
		for _, claim := range claims {
			Expect(w.gone(claim)).To(BeTrue())
		}
	})

	It("leaves its claims free if it is deleted before the driver answers, though the cache still shows a VolumeSnapshot of one", func() {
		w, claims, group := toBeGroupBound()
		Expect(w.reconcileVolumeGroupSnapshots()).To(Succeed())
		Expect(w.read(claims[0]).Finalizers).To(ContainElement(snapshots.ClaimProtection))

		w.delete(group)
		w.views.binds.Client = showing{w.views.binds.Client, volumeSnapshot("another")}
		w.settleGroupBinding()

		Expect(w.gone(group)).To(BeTrue())
		expectFree(w, claims...)
	})

	It("leaves no content and no claim if another manager that leads lets it go just before its content is made", func() {
		w, claims, group := toBeGroupBound()
		w.views.groupBinds.Client = beforeCreation{w.views.groupBinds.Client, func() {
			w.delete(group)
			deps := w.dependencies(newView(w))
			other := volumegroupsnapshot.New(deps, snapshotbinding.New(deps.Client, deps.Live))
			_, err := other.Reconcile(w.logging(), wake.Request(group))
			Expect(err).NotTo(HaveOccurred())
			Expect(w.gone(group)).To(BeTrue())
		}}

		_, err := w.groupBinds.Reconcile(w.logging(), wake.Request(group))

		Expect(err).NotTo(HaveOccurred())
		w.settleGroupBinding()
		expectNoGroup(w, group, claims)
	})

	It("is bound to the content that a person made, with the VolumeSnapshots of its snapshots as members", func() {
		w, of, found := toBeAdopted()

		w.settleGroupBinding()

		expectGroupReady(w, found)
		Expect(*found.Status.BoundVolumeGroupSnapshotContentName).To(Equal("found"))
		Expect(found.Finalizers).To(ConsistOf(snapshots.GroupBoundProtection))
		content := &groupsnapshotv1.VolumeGroupSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "found"}}
		w.get(content)
		Expect(content.Spec.VolumeGroupSnapshotRef.UID).To(Equal(found.UID))
		expectReady(w, of)
		Expect(of.OwnerReferences).To(ConsistOf(snapshots.OwnedBy(found)))
		Expect(*of.Status.VolumeGroupSnapshotName).To(Equal("found"))

		w.delete(found)
		w.settleGroupBinding()
		Expect(w.gone(found)).To(BeTrue())
		Expect(w.gone(of)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	DescribeTable("takes no content",
		func(ref corev1.ObjectReference, change func(*groupsnapshotv1.VolumeGroupSnapshotContent), reason, says string) {
			w, _, _ := toBeGroupBound()
			content, found := staticGroup("found"), staticGroupSnapshot("found")
			content.Spec.VolumeGroupSnapshotRef = ref
			change(content)
			w.create(content, found)

			w.settleBy(w.reconcileVolumeGroupSnapshots)

			w.get(found)
			Expect(*found.Status.Error.Message).To(ContainSubstring(says))
			Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning " + reason)))
			w.get(content)
			Expect(content.Spec.VolumeGroupSnapshotRef).To(Equal(ref))
		},
		Entry("that was made for claims", corev1.ObjectReference{Namespace: "default", Name: "found"}, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
			content.Spec.Source = groupsnapshotv1.VolumeGroupSnapshotContentSource{VolumeHandles: []string{"v"}}
		}, "GroupSnapshotContentMismatch", "has no groupSnapshotHandles"),
		Entry("of another namespace", corev1.ObjectReference{Namespace: tenant, Name: "found"}, asItIs, "GroupSnapshotContentMisbound", "is bound to a different snapshot"),
		Entry("of another name", corev1.ObjectReference{Namespace: "default", Name: "other"}, asItIs, "GroupSnapshotContentMisbound", "is bound to a different snapshot"),
		Entry("of an earlier one of its name", corev1.ObjectReference{Namespace: "default", Name: "found", UID: "earlier"}, asItIs,
			"GroupSnapshotContentMisbound", "is bound to a different snapshot"),
	)

	It("waits for the content that it names", func() {
		w, _, _ := toBeGroupBound()
		found := staticGroupSnapshot("found")
		w.create(found)

		w.settleBy(w.reconcileVolumeGroupSnapshots)

		w.get(found)
		Expect(*found.Status.Error.Message).To(ContainSubstring("VolumeGroupSnapshotContent found is missing: create it"))
	})

	It("goes with its content, members and snapshots", func() {
		w, claims, group := groupBound()

		w.delete(group)
		w.settleGroupBinding()

		expectNoGroup(w, group, claims)
	})

	It("leaves its contents and the snapshots with policy Retain", func() {
		w, _, group := groupBound()
		content := groupContentOf(w, group)
		update(w, content, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		for _, single := range w.all(&snapshotv1.VolumeSnapshotContentList{}) {
			update(w, single.(*snapshotv1.VolumeSnapshotContent), func(content *snapshotv1.VolumeSnapshotContent) {
				content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
			})
		}

		w.delete(group)
		w.settleGroupBinding()

		Expect(w.gone(group)).To(BeTrue())
		Expect(membersIn(w)).To(BeEmpty())
		w.get(content)
		Expect(content.DeletionTimestamp).To(BeNil())
		Expect(content.Annotations).To(HaveKey(snapshots.GroupBeingDeleted))
		Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(HaveLen(2))
		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	It("leaves its content if the policy becomes Retain just then", func() {
		w, _, group := groupBound()
		content := groupContentOf(w, group)
		update(w, content, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
			metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.GroupBeingDeleted, "yes")
		})
		old := content.DeepCopy()
		update(w, content, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		w.delete(group)
		w.views.groupBinds.live.Reader = oldState[*groupsnapshotv1.VolumeGroupSnapshotContent]{w, old}

		result, err := w.groupBinds.Reconcile(w.logging(), wake.Request(group))

		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(wake.AfterConflict))
		w.get(content)
		Expect(content.DeletionTimestamp).To(BeNil())
	})

	It("is kept while a claim is restored from a member, though the cache doesn't show that", func() {
		w, _, group := groupBound()
		restored := restoreOf(&snapshotOfVolume{snapshot: membersIn(w)[0]})
		w.create(restored)
		w.views.binds.Client = withoutClaimsOf{w}
		w.delete(group)

		w.settleGroupBinding()

		w.get(group)
		Expect(groupContentOf(w, group).Annotations).NotTo(HaveKey(snapshots.GroupBeingDeleted))
		Expect(membersIn(w)).To(HaveLen(2))
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning SnapshotDeletePending the snapshots are kept while claim restored")))

		w.removeFinalizers(restored)
		w.delete(restored)
		w.settleGroupBinding()
		Expect(w.gone(group)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("keeps a member that is deleted alone", func() {
		w, _, group := groupBound()
		member := membersIn(w)[0]
		w.delete(member)

		w.settleGroupBinding()

		w.get(member)
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning SnapshotDeletePending the snapshot is kept while its group is there")))
		expectGroupReady(w, group)
		w.delete(group)
		w.settleGroupBinding()
		Expect(w.gone(member)).To(BeTrue())
	})

	It("gets no second content after the first is lost", func() {
		w, claims, group := groupBound()
		content := groupContentOf(w, group)
		w.removeFinalizers(content)
		w.delete(content)

		w.settleGroupBinding()

		w.get(group)
		Expect(*group.Status.ReadyToUse).To(BeFalse())
		Expect(*group.Status.Error.Message).To(ContainSubstring("is not made again, with the data of another time"))
		Expect(w.storage.Snapshots()).To(HaveLen(2))

		w.delete(group)
		w.settleGroupBinding()
		Expect(w.gone(group)).To(BeTrue())
		expectFree(w, claims...)
	})

	It("that was made again under its name leaves the content of the first, and frees its members once they are deleted", func() {
		w, _, first := groupBound()
		content, had := groupContentOf(w, first), membersIn(w)
		w.removeFinalizers(first)
		w.delete(first)
		second := groupSnapshot()
		w.create(second)
		w.settleGroupBinding()
		expectGroupReady(w, second)
		Expect(membersIn(w)).To(HaveLen(4))
		for _, member := range had {
			w.delete(member)
		}
		w.settleGroupBinding()
		Expect(membersIn(w)).To(HaveLen(2))

		w.delete(second)
		w.settleGroupBinding()

		Expect(w.gone(second)).To(BeTrue())
		Expect(membersIn(w)).To(BeEmpty())
		w.get(content)
		Expect(content.DeletionTimestamp).To(BeNil())
		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	It("leaves no deleted member behind that was not freed in time", func() {
		w, _, group := groupBound()
		had := membersIn(w)
		w.removeFinalizers(group)
		w.delete(group)
		for _, member := range had {
			w.delete(member)
		}

		_, err := w.groupBinds.Reconcile(w.logging(), wake.Request(group))
		Expect(err).NotTo(HaveOccurred())
		w.settleBinding()

		Expect(membersIn(w)).To(BeEmpty())
		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	It("that is gone gets no content by an old cache", func() {
		w, _, group := toBeGroupBound()
		old := group.DeepCopy()
		w.delete(group)
		w.views.groupBinds.Client = oldState[*groupsnapshotv1.VolumeGroupSnapshot]{w, old}

		_, err := w.groupBinds.Reconcile(w.logging(), wake.Request(old))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.all(&groupsnapshotv1.VolumeGroupSnapshotContentList{})).To(BeEmpty())
	})

	It("takes no VolumeSnapshot of a tenant for its member", func() {
		w, _, group := toBeGroupBound()
		Expect(w.reconcileVolumeGroupSnapshots()).To(Succeed())
		name, _ := snapshots.MemberNames(group.UID, groupContentOf(w, group).Spec.Source.VolumeHandles[0])
		forged := volumeSnapshot(name)
		w.create(forged)

		w.settleGroupBinding()

		w.get(group)
		Expect(*group.Status.Error.Message).To(ContainSubstring("is not of the group, and has the name of its member: delete it"))
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning GroupSnapshotBindFailed")))
		w.delete(forged)
		w.settleGroupBinding()
		expectGroupReady(w, group)
	})

	It("that snapshot-controller began is carried on, with the same content and members", func() {
		w, _, group := toBeGroupBound()
		Expect(w.reconcileVolumeGroupSnapshots()).To(Succeed())
		content := groupContentOf(w, group)
		Expect(w.reconcileGroups()).To(Succeed())
		w.get(content)
		info := content.Status.VolumeSnapshotInfoList[0]
		_, name := snapshots.MemberNames(group.UID, info.VolumeHandle)
		begun := memberOf(content, 0)
		begun.Name, begun.Finalizers, begun.Status = name, nil, nil
		begun.Spec.VolumeSnapshotRef.Name, _ = snapshots.MemberNames(group.UID, info.VolumeHandle)
		begun.Spec.VolumeSnapshotRef.UID = ""
		w.create(begun)

		w.settleGroupBinding()

		expectGroupReady(w, group)
		Expect(groupContentOf(w, group).UID).To(Equal(content.UID))
		had := begun.UID
		w.get(begun)
		Expect(begun.UID).To(Equal(had))
		Expect(begun.Spec.VolumeSnapshotRef.UID).NotTo(BeEmpty())
		Expect(begun.Finalizers).To(ConsistOf(snapshots.ContentProtection))
	})

	DescribeTable("leaks nothing and loses nothing at a crash",
		func(of fault, first, step int) {
			for number := first; number < 20; number += step {
				w, claims, group := toBeGroupBound()
				w.faults = map[int]fault{w.written + number: of}
				w.settleAfterCrashes(w.reconcileGroupBinding)
				expectGroupReady(w, group)
				Expect(w.storage.Snapshots()).To(HaveLen(2), "write %d", number)
				Expect(membersIn(w)).To(HaveLen(2), "write %d", number)
				for _, member := range membersIn(w) {
					expectReady(w, member)
				}
				expectFree(w, claims...)

				w.delete(group)
				w.faults = map[int]fault{w.written + number: of}
				w.settleAfterCrashes(w.reconcileGroupBinding)
				expectNoGroup(w, group, claims)
				w.empty()
			}
		},
		// Before a write is after the one before.
		Entry("before a write", lost, 0, 2), Entry("after a write", unanswered, 0, 2), Entry("while another writes", contended, 0, 3),
	)

	DescribeTable("leaves nothing if it is deleted while it is made",
		func(writes int) {
			w, claims, group := toBeGroupBound()
			w.failWriteBy(w.reconcileGroupBinding, writes, unanswered)
			w.delete(group)

			w.settleGroupBinding()

			expectNoGroup(w, group, claims)
		},
		Entry("after its finalizer", 0), Entry("after a claim's", 1), Entry("after its content", 3), Entry("after the call", 5), Entry("after a member", 7),
		Entry("after a member's content", 8), Entry("after its status", 9), Entry("after all of a member", 10),
	)

	It("wakes by its claims, content and members in a manager that runs", func() {
		w, claims, group := toBeGroupBound()
		update(w, w.read(claims[0]), func(claim *corev1.PersistentVolumeClaim) { claim.Labels = nil })
		update(w, w.read(claims[1]), func(claim *corev1.PersistentVolumeClaim) { claim.Labels = nil })
		mgr := newManager(reconciler.ClusterScope)
		deps := w.dependencies(w.views.binds)
		deps.Client, deps.Live = mgr.GetClient(), mgr.GetAPIReader()
		Expect(index.Add(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
		Expect(index.AddContents(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
		Expect(index.AddSnapshots(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
		kept := snapshotbinding.New(deps.Client, deps.Live)
		Expect(volumesnapshot.New(deps, kept).SetupWithManager(mgr)).To(Succeed())
		Expect(volumesnapshotcontent.New(deps).SetupWithManager(mgr)).To(Succeed())
		Expect(volumegroupsnapshot.New(deps, kept).SetupWithManager(mgr)).To(Succeed())
		Expect(volumegroupsnapshotcontent.New(deps).SetupWithManager(mgr)).To(Succeed())
		runManager(mgr)
		Eventually(func(g Gomega) {
			w.get(group)
			g.Expect(group.Status).NotTo(BeNil())
			g.Expect(group.Status.Error).NotTo(BeNil())
		}).Should(Succeed())

		update(w, w.read(claims[0]), labelled)

		Eventually(func(g Gomega) {
			w.get(group)
			g.Expect(snapshots.IsGroupReady(group)).To(BeTrue())
			g.Expect(membersIn(w)).To(HaveLen(1))
			g.Expect(snapshots.IsReady(membersIn(w)[0])).To(BeTrue())
			g.Expect(w.read(claims[0]).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
		}).Should(Succeed())
		w.delete(group)
		Eventually(func() bool { return w.gone(group) && len(membersIn(w)) == 0 }).Should(BeTrue())
		Eventually(w.storage.Snapshots).Should(BeEmpty())
	})
})

// asItIs changes nothing.
func asItIs(*groupsnapshotv1.VolumeGroupSnapshotContent) {}

// labelled is a claim of the group.
func labelled(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"app": "shop"} }

// toBeGroupBound is a cluster with two volumes of the driver, and a VolumeGroupSnapshot of their claims.
func toBeGroupBound(options ...func(*groupsnapshotv1.VolumeGroupSnapshot)) (*world, []*corev1.PersistentVolumeClaim, *groupsnapshotv1.VolumeGroupSnapshot) {
	GinkgoHelper()
	w, claim, _ := madeByDriver()
	update(w, claim, labelled)
	other := Claim(InClass("kept"), ClaimNamed("log"), labelled)
	w.create(other)
	w.settle()
	w.get(other)
	group := groupSnapshot()
	for _, option := range options {
		option(group)
	}
	class := groupClass()
	class.Parameters = map[string]string{"tier": "cold"}
	w.create(class, group)
	w.newEvents()
	return w, []*corev1.PersistentVolumeClaim{claim, other}, group
}

// groupBound is the same cluster with the snapshots.
func groupBound() (*world, []*corev1.PersistentVolumeClaim, *groupsnapshotv1.VolumeGroupSnapshot) {
	GinkgoHelper()
	w, claims, group := toBeGroupBound()
	w.settleGroupBinding()
	expectGroupReady(w, group)
	w.newEvents()
	return w, claims, group
}

// toBeAdopted is a cluster with a group snapshot that is in the storage alone, and what a person makes to have it again: a
// VolumeSnapshot of one of its snapshots, which is bound, and a VolumeGroupSnapshot.
func toBeAdopted() (*world, *snapshotv1.VolumeSnapshot, *groupsnapshotv1.VolumeGroupSnapshot) {
	GinkgoHelper()
	w, made := grouped()
	handle, single := *made.Status.VolumeGroupSnapshotHandle, made.Status.VolumeSnapshotInfoList[0].SnapshotHandle
	w.removeFinalizers(made)
	w.delete(made)
	content, found := staticGroup("found"), staticGroupSnapshot("found")
	content.Spec.VolumeGroupSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "found"}
	content.Spec.Source.GroupSnapshotHandles.VolumeGroupSnapshotHandle = handle
	of, member := staticContent("member", single), staticSnapshot("member", "member")
	of.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "default", Name: "member"}
	w.create(of, member)
	w.settleBinding()
	expectReady(w, member)
	w.create(content, found)
	return w, member, found
}

// groupSnapshot is that of the claims with the label.
func groupSnapshot() *groupsnapshotv1.VolumeGroupSnapshot {
	return &groupsnapshotv1.VolumeGroupSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
		Spec: groupsnapshotv1.VolumeGroupSnapshotSpec{
			VolumeGroupSnapshotClassName: new("cold"),
			Source:                       groupsnapshotv1.VolumeGroupSnapshotSource{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
		},
	}
}

// staticGroupSnapshot is one of the content with its name.
func staticGroupSnapshot(name string) *groupsnapshotv1.VolumeGroupSnapshot {
	group := groupSnapshot()
	group.Name = name
	group.Spec = groupsnapshotv1.VolumeGroupSnapshotSpec{Source: groupsnapshotv1.VolumeGroupSnapshotSource{VolumeGroupSnapshotContentName: &name}}
	return group
}

func groupContentOf(w *world, group *groupsnapshotv1.VolumeGroupSnapshot) *groupsnapshotv1.VolumeGroupSnapshotContent {
	GinkgoHelper()
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: snapshots.GroupContentName(group.UID)}}
	w.get(content)
	return content
}

// membersIn are the VolumeSnapshots of groups.
func membersIn(w *world) (members []*snapshotv1.VolumeSnapshot) {
	for _, object := range w.all(&snapshotv1.VolumeSnapshotList{}) {
		if snapshot := object.(*snapshotv1.VolumeSnapshot); snapshots.IsInGroup(snapshot) {
			members = append(members, snapshot)
		}
	}
	return members
}

// recordGroup records the snapshots of a group as the csi-snapshotter of its driver does.
func (w *world) recordGroup(content *groupsnapshotv1.VolumeGroupSnapshotContent, handles ...string) {
	GinkgoHelper()
	before := content.DeepCopy()
	content.Status = &groupsnapshotv1.VolumeGroupSnapshotContentStatus{VolumeGroupSnapshotHandle: new("group")}
	for i, handle := range handles {
		content.Status.VolumeSnapshotInfoList = append(content.Status.VolumeSnapshotInfoList,
			groupsnapshotv1.VolumeSnapshotInfo{VolumeHandle: content.Spec.Source.VolumeHandles[i], SnapshotHandle: handle})
	}
	Expect(w.direct.Status().Patch(context.Background(), content, client.MergeFrom(before))).To(Succeed())
}

func expectGroupReady(w *world, group *groupsnapshotv1.VolumeGroupSnapshot) {
	GinkgoHelper()
	w.get(group)
	Expect(group.Status).NotTo(BeNil())
	Expect(group.Status.Error).To(BeNil())
	Expect(ptr.Deref(group.Status.ReadyToUse, false)).To(BeTrue())
	Expect(group.Status.BoundVolumeGroupSnapshotContentName).NotTo(BeNil())
}

// expectNoGroup expects that nothing is left of a group, and that its claims are free.
func expectNoGroup(w *world, group *groupsnapshotv1.VolumeGroupSnapshot, claims []*corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Expect(w.gone(group)).To(BeTrue())
	Expect(w.all(&groupsnapshotv1.VolumeGroupSnapshotContentList{})).To(BeEmpty())
	Expect(membersIn(w)).To(BeEmpty())
	Expect(w.all(&snapshotv1.VolumeSnapshotContentList{})).To(BeEmpty())
	Expect(w.storage.Snapshots()).To(BeEmpty())
	expectFree(w, claims...)
}

func expectFree(w *world, claims ...*corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	for _, claim := range claims {
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(snapshots.ClaimProtection))
	}
}

func (w *world) reconcileVolumeGroupSnapshots() error {
	var failures []error
	for _, object := range w.all(&groupsnapshotv1.VolumeGroupSnapshotList{}) {
		_, err := w.groupBinds.Reconcile(w.logging(), wake.Request(object))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// reconcileGroupBinding runs the reconcilers of VolumeGroupSnapshots, VolumeSnapshots and their contents once over all
// objects.
func (w *world) reconcileGroupBinding() error {
	return errors.Join(w.reconcileVolumeGroupSnapshots(), w.reconcileGroups(), w.reconcileBinding())
}

func (w *world) settleGroupBinding() {
	GinkgoHelper()
	w.settleBy(w.reconcileGroupBinding)
}
