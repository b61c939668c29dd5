package controllers

import (
	"context"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim that is to be restored from a VolumeSnapshot", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("gets a volume with the content of the snapshot, in scope="+string(scope), func() {
			w, s := withSnapshot(scope)
			claim := restoreOf(s)
			w.create(claim)

			w.settle()

			w.get(Volume(provisioned.VolumeID(claim)))
			Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(Equal(backend.Source{Snapshot: s.handle()})))
			Expect(provisioned.Records(w.read(claim))).To(HaveEach(BeEmpty()), "the volume object has the answer")
			Expect(provisioned.HasIntent(w.read(claim))).To(BeFalse())
		})
	}

	DescribeTable("waits, with a reason, and nothing is made",
		func(reason string, change func(*world, *snapshotOfVolume), options ...func(*corev1.PersistentVolumeClaim)) {
			w, s := withSnapshot(reconciler.ClusterScope)
			volumes := w.storage.Len()
			change(w, s)
			claim := restoreOf(s, options...)
			w.create(claim)

			w.settle()

			Expect(w.condition(claim).Message).To(ContainSubstring(reason))
			Expect(w.condition(claim).Message).To(ContainSubstring("VolumeSnapshot"))
			Expect(w.newEvents()).To(ContainElement(And(ContainSubstring("Warning ProvisioningFailed"), ContainSubstring(reason))))
			Expect(w.storage.Len()).To(Equal(volumes))
			Expect(provisioned.HasIntent(w.read(claim))).To(BeFalse())
		},
		Entry("while there is no such snapshot", "does not exist: create it", func(w *world, s *snapshotOfVolume) { w.delete(s.snapshot) }),
		Entry("while the snapshot has no content", "is not ready yet", func(w *world, s *snapshotOfVolume) {
			s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.BoundVolumeSnapshotContentName = nil })
		}),
		Entry("while the snapshot is not ready", "is not ready yet", func(w *world, s *snapshotOfVolume) {
			s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.ReadyToUse = new(false) })
		}),
		Entry("while the content is not ready, with what the driver says", "is not ready yet: uploading", func(w *world, s *snapshotOfVolume) {
			s.updateContentStatus(w, func(status *snapshotv1.VolumeSnapshotContentStatus) {
				status.ReadyToUse, status.Error = new(false), &snapshotv1.VolumeSnapshotError{Message: new("uploading")}
			})
		}),
		Entry("while the content has no handle", "is not ready yet", func(w *world, s *snapshotOfVolume) {
			s.updateContentStatus(w, func(status *snapshotv1.VolumeSnapshotContentStatus) { status.SnapshotHandle = nil })
		}),
		Entry("where the handle is too long to be recorded", "which is too long", func(w *world, s *snapshotOfVolume) {
			s.updateContentStatus(w, func(status *snapshotv1.VolumeSnapshotContentStatus) {
				status.SnapshotHandle = new(strings.Repeat("x", 4096))
			})
		}),
		Entry("where the content is gone", "VolumeSnapshotContent snapcontent-", func(w *world, s *snapshotOfVolume) {
			update(w, s.content, func(content *snapshotv1.VolumeSnapshotContent) { content.Finalizers = nil })
			w.delete(s.content)
		}),
		Entry("where the content is that of an earlier snapshot of the name", "which is that of VolumeSnapshot default/snapshot with uid", func(w *world, s *snapshotOfVolume) {
			earlier := s.content
			s.makeAgain(w)
			s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.BoundVolumeSnapshotContentName = &earlier.Name })
		}),
		Entry("where the content is that of another namespace's snapshot", "which is that of VolumeSnapshot tenant/snapshot", func(w *world, s *snapshotOfVolume) {
			content := dynamicContent(string(s.snapshot.UID), "v")
			content.Name, content.Spec.VolumeSnapshotRef.Namespace = "tenants", "tenant"
			w.create(content)
			s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.BoundVolumeSnapshotContentName = new("tenants") })
		}),
		Entry("where the snapshot is being deleted", "is being deleted: create the claim again", func(w *world, s *snapshotOfVolume) {
			update(w, s.snapshot, func(snapshot *snapshotv1.VolumeSnapshot) { snapshot.Finalizers = []string{"example.com/kept"} })
			w.delete(s.snapshot)
		}),
		Entry("where the content is being deleted", "is being deleted: create the claim again", func(w *world, s *snapshotOfVolume) { w.delete(s.content) }),
		Entry("where the content says that its snapshot is deleted", "is being deleted: create the claim again", func(w *world, s *snapshotOfVolume) {
			update(w, s.content, func(content *snapshotv1.VolumeSnapshotContent) {
				metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingDeleted, "yes")
			})
		}),
		Entry("where the snapshot is of another driver", `is of driver "other.example.com", and the claim's class of disk.example.com`, func(w *world, s *snapshotOfVolume) {
			s.makeAgain(w, func(content *snapshotv1.VolumeSnapshotContent) { content.Spec.Driver = "other.example.com" })
		}),
		Entry("where the content needs more", "needs 2Gi, and the claim asks for 1Gi: create the claim again with at least 2Gi", func(w *world, s *snapshotOfVolume) {
			s.updateContentStatus(w, func(status *snapshotv1.VolumeSnapshotContentStatus) { status.RestoreSize = new(int64(2 << 30)) })
		}),
		Entry("where the snapshot needs more", "needs 2Gi, and the claim asks for 1Gi", func(w *world, s *snapshotOfVolume) {
			s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.RestoreSize = new(resource.MustParse("2Gi")) })
		}),
		Entry("where it asks for another volumeMode", "is of a volume with volumeMode Filesystem: ask for the same", func(*world, *snapshotOfVolume) {}, AskingBlock()),
		Entry("where the content doesn't allow another volumeMode", "is of a volume with volumeMode Filesystem: ask for the same", func(w *world, s *snapshotOfVolume) {
			s.allowModeChange(w, "maybe")
		}, AskingBlock()),
		Entry("where the backend restores none", "can't restore VolumeSnapshot snapshot, and no empty volume is made", func(w *world, _ *snapshotOfVolume) { w.storage.SetRestores(false) }),
		Entry("while the cluster has no snapshots", "install the CRDs of snapshot.storage.k8s.io/v1", func(w *world, _ *snapshotOfVolume) {
			w.views.claims.live.Reader = withoutSnapshots{w.views.claims.live.Reader}
		}),
	)

	It("is restored with another volumeMode where the content allows it", func() {
		w, s := withSnapshot(reconciler.ClusterScope)
		s.allowModeChange(w, "true")
		claim := restoreOf(s, AskingBlock())
		w.create(claim)

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(Equal(backend.Source{Snapshot: s.handle(), AnyMode: true})))
	})

	DescribeTable("is given the snapshot, wherever that is from, by a content", func(given bool, change func(*snapshotv1.VolumeSnapshotContent)) {
		w, s := withSnapshot(reconciler.ClusterScope)
		s.makeAgain(w, ofSnapshot(s.handle()), change)
		claim := restoreOf(s)
		w.create(claim)

		w.settle()

		Expect(w.storage.Source(provisioned.VolumeID(claim))).To(HaveValue(Equal(backend.Source{Snapshot: s.handle(), Given: given})))
	},
		Entry("that an administrator made for its VolumeSnapshot", true, func(*snapshotv1.VolumeSnapshotContent) {}),
		Entry("and not by one that snapshot-controller made for a member of a group", false, func(content *snapshotv1.VolumeSnapshotContent) {
			metav1.SetMetaDataAnnotation(&content.ObjectMeta, "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle", "group")
		}),
	)

	It("is restored once the snapshot is there and ready", func() {
		w, s := withSnapshot(reconciler.ClusterScope)
		s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.ReadyToUse = new(false) })
		claim := restoreOf(s)
		w.create(claim)
		w.settle()
		Expect(w.condition(claim).Message).To(ContainSubstring("is not ready yet"))

		s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.ReadyToUse = new(true) })
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("gets no volume where the storage has lost the snapshot", func() {
		w, s := withSnapshot(reconciler.ClusterScope)
		Expect(w.storage.DeleteSnapshot(context.Background(), s.handle())).To(Succeed())
		claim := restoreOf(s)
		w.create(claim)

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("there is no snapshot"))
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())
		w.delete(claim)
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())
	})
})

var _ = Describe("A restore that is interrupted", func() {
	It("goes on with its first snapshot, though another has the name by now", func() {
		w, s, claim := halfRestored()
		first := s.handle()
		s.makeAgain(w)
		w.restart()

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.driver.Request(provisioned.VolumeID(claim)).Source.Snapshot).To(Equal(first))
	})

	It("goes on with what an administrator gave it, though that is taken back", func() {
		w, s := withSnapshot(reconciler.ClusterScope)
		s.makeAgain(w, ofSnapshot(s.handle()))
		s.allowModeChange(w, "true")
		claim := halfRestore(w, s)
		Expect(provisioned.SourceOf(w.read(claim))).To(HaveValue(Equal(backend.Source{Snapshot: s.handle(), Given: true, AnyMode: true})), "what repeats have")
		w.delete(s.content)
		w.restart()

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("goes on though its VolumeSnapshot is gone", func() {
		w, s, claim := halfRestored()
		w.delete(s.snapshot)
		w.restart()

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("is undone with its first snapshot, though another has the name by now", func() {
		w, s, claim := halfRestored()
		first := s.handle()
		s.makeAgain(w)
		w.delete(claim)
		w.restart()

		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeFalse())
		Expect(w.driver.Undone()).To(HaveEach(HaveField("Source", HaveValue(Equal(backend.Source{Snapshot: first})))))
		Expect(w.driver.Undone()).NotTo(BeEmpty())
	})

	It("makes nothing from another snapshot with a cache that shows nothing of the call", func() {
		w, s := withSnapshot(reconciler.ClusterScope)
		first := s.handle()
		claim := restoreOf(s)
		w.create(claim)
		w.faults = map[int]fault{w.written + writesBeforeRecord: lost}
		_ = w.round()
		old := w.read(claim).DeepCopy()
		Expect(provisioned.HasIntent(old)).To(BeTrue())
		Expect(provisioned.RestoreOf(old).Snapshot).To(BeEmpty())
		w.faults = map[int]fault{w.written + 1: lost}
		_ = w.round()
		Expect(provisioned.RestoreOf(w.read(claim)).Snapshot).To(Equal(first))
		Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeTrue())
		s.makeAgain(w)
		w.restart()
		calls := len(w.storage.Calls())

		w.views.claims.Client = stale{w, []client.Object{old}}
		_ = w.round()
		Expect(w.storage.Calls()).To(HaveLen(calls))
		w.restart()
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.driver.Request(provisioned.VolumeID(claim)).Source.Snapshot).To(Equal(first))
	})

	It("goes without a call where none was made, though its snapshot is gone", func() {
		w, s := withSnapshot(reconciler.ClusterScope)
		claim := restoreOf(s)
		w.create(claim)
		w.faults = map[int]fault{w.written + writesBeforeRecord: lost}
		_ = w.round()
		Expect(provisioned.HasIntent(w.read(claim))).To(BeTrue())
		w.delete(s.snapshot)
		calls := len(w.storage.Calls())
		w.delete(claim)

		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Calls()).To(HaveLen(calls))
	})

	const writes = 8
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("ends with one volume of one snapshot, or with nothing, when write "+string(rune('1'+number))+" is "+string(kind), func() {
				for _, deleted := range []bool{false, true} {
					w := newWorldIn(newMemory())
					w.create(csiBackend(), tiered())
					w.settle()
					s := snapshotIn(w)
					w.driver.SetPlaces(zoneTopology("a"))
					volumes, first := w.storage.Len(), s.handle()
					claim := restoreOf(s)
					w.create(claim)
					w.failWrite(number, kind)
					s.makeAgain(w)
					w.restart()
					if deleted {
						w.delete(claim)
					}
					w.settle()

					if deleted {
						Expect(w.gone(claim)).To(BeTrue())
						Expect(w.storage.Len()).To(Equal(volumes))
					} else {
						expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
						Expect(w.storage.Len()).To(Equal(volumes + 1))
						Expect(w.driver.Request(provisioned.VolumeID(claim)).Source.Snapshot).To(BeElementOf(first, s.handle()))
					}
				}
			})
		}
	}
})

// writesBeforeRecord are those of a restore before the snapshot is recorded: the class's finalizer, and the operation.
const writesBeforeRecord = 2

// snapshotOfVolume is a VolumeSnapshot of the driver with its content, as snapshot-controller leaves them.
type snapshotOfVolume struct {
	snapshot *snapshotv1.VolumeSnapshot
	content  *snapshotv1.VolumeSnapshotContent
	volume   string
}

// withSnapshot is a cluster with the snapshot of a volume of the driver, ready to be restored.
func withSnapshot(scope reconciler.Scope) (*world, *snapshotOfVolume) {
	GinkgoHelper()
	w := newCSIWorld(scope)
	return w, snapshotIn(w)
}

// snapshotIn makes a volume of the driver, and a snapshot of it.
func snapshotIn(w *world) *snapshotOfVolume {
	GinkgoHelper()
	source := Claim(InClass("kept"), requestedFrom(csiDriver))
	w.create(source, snapshotClass())
	w.settle()
	pv := Volume(provisioned.VolumeID(source))
	w.get(pv)
	s := &snapshotOfVolume{volume: pv.Spec.CSI.VolumeHandle}
	s.make(w)
	w.newEvents()
	return s
}

// make makes the snapshot, with the driver.
func (s *snapshotOfVolume) make(w *world, options ...func(*snapshotv1.VolumeSnapshotContent)) {
	GinkgoHelper()
	s.snapshot = &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "snapshot"},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: new("cold"), Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: new("data")},
		},
	}
	w.create(s.snapshot)
	s.content = dynamicContent(string(s.snapshot.UID), s.volume)
	for _, option := range options {
		option(s.content)
	}
	w.create(s.content)
	w.settleSnapshots()
	w.get(s.content)
	if s.content.Status == nil {
		s.content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: new("theirs"), ReadyToUse: new(true)}
		Expect(w.direct.Status().Update(context.Background(), s.content)).To(Succeed())
	}
	s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) {
		status.BoundVolumeSnapshotContentName, status.ReadyToUse = &s.content.Name, new(true)
	})
}

// makeAgain deletes the VolumeSnapshot, and makes another of its name. The first one's content stays.
func (s *snapshotOfVolume) makeAgain(w *world, options ...func(*snapshotv1.VolumeSnapshotContent)) {
	GinkgoHelper()
	w.delete(s.snapshot)
	s.make(w, options...)
}

func (s *snapshotOfVolume) handle() string { return *s.content.Status.SnapshotHandle }

func (s *snapshotOfVolume) updateStatus(w *world, change func(*snapshotv1.VolumeSnapshotStatus)) {
	GinkgoHelper()
	w.get(s.snapshot)
	if s.snapshot.Status == nil {
		s.snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	change(s.snapshot.Status)
	Expect(w.direct.Status().Update(context.Background(), s.snapshot)).To(Succeed())
}

func (s *snapshotOfVolume) updateContentStatus(w *world, change func(*snapshotv1.VolumeSnapshotContentStatus)) {
	GinkgoHelper()
	w.get(s.content)
	change(s.content.Status)
	Expect(w.direct.Status().Update(context.Background(), s.content)).To(Succeed())
}

func (s *snapshotOfVolume) allowModeChange(w *world, value string) {
	GinkgoHelper()
	update(w, s.content, func(content *snapshotv1.VolumeSnapshotContent) {
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.AllowModeChange, value)
	})
}

// restoreOf is a claim that is to be restored from a snapshot.
func restoreOf(s *snapshotOfVolume, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	basics := []func(*corev1.PersistentVolumeClaim){
		ClaimNamed("restored"), InClass("tiered"), requestedFrom(csiDriver), startingFrom(provisioned.SnapshotGroup, provisioned.SnapshotKind, s.snapshot.Name),
	}
	return Claim(append(basics, options...)...)
}

// halfRestored is a cluster with a claim whose storage the driver restored, and whose volume object is lost on
// the way.
func halfRestored() (*world, *snapshotOfVolume, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w, s := withSnapshot(reconciler.ClusterScope)
	return w, s, halfRestore(w, s)
}

func halfRestore(w *world, s *snapshotOfVolume) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := restoreOf(s)
	w.create(claim)
	w.faults = map[int]fault{w.written + writesBeforeRecord + 1: lost}
	_ = w.round()
	Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeTrue())
	Expect(w.gone(Volume(provisioned.VolumeID(claim)))).To(BeTrue())
	Expect(w.read(claim).Finalizers).To(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
	return claim
}

// ofSnapshot makes a content what a person makes for a snapshot that is there.
func ofSnapshot(handle string) func(*snapshotv1.VolumeSnapshotContent) {
	return func(content *snapshotv1.VolumeSnapshotContent) {
		content.Spec.Source = snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle}
	}
}

// withoutSnapshots is an API server without their CRDs.
type withoutSnapshots struct{ client.Reader }

func (r withoutSnapshots) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*snapshotv1.VolumeSnapshot); is {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: provisioned.SnapshotGroup, Kind: provisioned.SnapshotKind}}
	}
	return r.Reader.Get(ctx, key, object, options...)
}
