package controllers

import (
	"context"
	"errors"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// groupMember is the annotation by which snapshot-controller marks the content of a member.
const groupMember = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"

// theGroup is the handle of the group snapshot of these specs.
const theGroup = "groups/groupsnapshot-g1"

var _ = Describe("A VolumeGroupSnapshotContent", func() {
	It("gets a snapshot of each volume, with the parameters of its class", func() {
		w, content := toBeGrouped()

		w.settleGroups()

		w.get(content)
		Expect(*content.Status.VolumeGroupSnapshotHandle).To(Equal(theGroup))
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		Expect(content.Status.CreationTime.Unix()).To(BeEquivalentTo(1))
		Expect(content.Annotations).NotTo(HaveKey(snapshots.GroupBeingCreated))
		var of []string
		for _, member := range content.Status.VolumeSnapshotInfoList {
			Expect(w.storage.Snapshots()).To(HaveKeyWithValue(member.SnapshotHandle, map[string]string{"tier": "cold"}))
			Expect(*member.ReadyToUse).To(BeTrue())
			Expect(*member.CreationTime).To(BeEquivalentTo(1e9))
			Expect(*member.RestoreSize).To(BeEquivalentTo(1 << 30))
			of = append(of, member.VolumeHandle)
		}
		Expect(of).To(Equal(content.Spec.Source.VolumeHandles))
	})

	It("is ready once the storage has uploaded its snapshots", func() {
		w, content := toBeGrouped()
		w.storage.SetUploading(true)
		w.settleGroups()
		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeFalse())
		Expect(content.Status.VolumeSnapshotInfoList).To(HaveLen(2))

		Expect(*content.Status.VolumeSnapshotInfoList[0].ReadyToUse).To(BeFalse())
		w.storage.SetUploading(false)
		w.settleGroups()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		for _, member := range content.Status.VolumeSnapshotInfoList {
			Expect(*member.ReadyToUse).To(BeTrue())
		}
		Expect(w.driver.Groups()).To(HaveLen(1))
	})

	DescribeTable("leaks nothing and loses nothing at a crash",
		func(of fault) {
			for number := range 3 {
				w, content := toBeGrouped()
				w.faults = map[int]fault{w.written + number: of}
				w.settleGroupsAfterCrashes()
				w.get(content)
				Expect(*content.Status.ReadyToUse).To(BeTrue(), "write %d", number)
				Expect(content.Annotations).NotTo(HaveKey(snapshots.GroupBeingCreated))

				w.deleteGroupAsSnapshotController(content)
				w.faults = map[int]fault{w.written + number: of}
				w.settleGroupsAfterCrashes()
				Expect(w.gone(content)).To(BeTrue(), "write %d", number)
				Expect(w.driver.Groups()).To(BeEmpty())
				Expect(w.storage.Snapshots()).To(BeEmpty())
				w.empty()
			}
		},
		Entry("before a write", lost), Entry("after a write", unanswered), Entry("while another writes", contended),
	)

	It("finds the group snapshot of a call whose answer was lost, though it and its class are deleted in the middle", func() {
		w, content := toBeGrouped()
		w.driver.HalfNext(errors.New("the connection broke"))
		_ = w.reconcileGroups()
		w.delete(groupClass())
		w.get(content)
		Expect(content.Annotations).To(HaveKey(snapshots.GroupBeingCreated))
		Expect(*content.Status.Error.Message).To(Equal("the connection broke"))
		w.deleteGroupAsSnapshotController(content)

		w.restart()
		w.settleGroups()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("is kept while the outcome of its call is unknown", func() {
		w, content := toBeGrouped()
		w.storage.FailNext(errors.New("unknown"), errors.New("unknown"), backend.Unavailable.Errorf("busy"), backend.Conflict.Errorf("other"))
		_ = w.reconcileGroups()
		w.deleteGroupAsSnapshotController(content)
		for range 3 {
			_ = w.reconcileGroups()
			w.get(content)
			Expect(content.Annotations).To(HaveKey(snapshots.GroupBeingCreated))
		}
	})

	It("begins nothing once it is deleted", func() {
		w, content := toBeGrouped()
		w.delete(content)

		w.settleGroups()

		w.get(content)
		Expect(content.Status).To(BeNil())
		Expect(w.driver.Groups()).To(BeEmpty())
	})

	It("goes when the storage says that there is no group snapshot, with an error that says what to do", func() {
		w, content := toBeGrouped()
		w.storage.FailNext(backend.Invalid.Errorf("volumes of two pools"))
		w.settleGroups()
		w.get(content)
		Expect(content.Annotations).NotTo(HaveKey(snapshots.GroupBeingCreated))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("GroupSnapshotCreationFailed volumes of two pools")))
		w.deleteGroupAsSnapshotController(content)
		w.settleGroups()
		Expect(w.gone(content)).To(BeTrue())
	})

	It("of policy Retain leaves its snapshots", func() {
		w, content := grouped()
		update(w, content, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		w.deleteGroupAsSnapshotController(content)

		w.settleGroups()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	It("leaves its snapshots while another content has the same group snapshot", func() {
		w, content := grouped()
		other := staticGroup("other")
		w.create(other)
		w.deleteGroupAsSnapshotController(content)

		w.settleGroups()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("VolumeGroupSnapshotContent other has it, too")))
		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	It("waits while a content of another namespace has one of its snapshots", func() {
		w, content := grouped()
		single := staticContent("single", content.Status.VolumeSnapshotInfoList[0].SnapshotHandle)
		single.Spec.VolumeSnapshotRef.Namespace = tenant
		byHand := staticContent("by-hand", content.Status.VolumeSnapshotInfoList[1].SnapshotHandle)
		w.create(single, memberOf(content, 1), byHand)
		w.deleteGroupAsSnapshotController(content)

		_ = w.reconcileGroups()

		Expect(w.newEvents()).To(ContainElement(ContainSubstring("VolumeSnapshotContent single of another namespace has a snapshot of the group")))
		Expect(w.storage.Snapshots()).To(HaveLen(2))
		w.delete(single)
		w.settleGroups()
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("that a person made is found, lists no members, and goes with its group snapshot", func() {
		w, made := grouped()
		update(w, made, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) { content.Finalizers = nil })
		w.delete(made)
		content := staticGroup("by-hand")
		w.create(content)

		w.settleGroups()

		w.get(content)
		Expect(*content.Status.VolumeGroupSnapshotHandle).To(Equal(theGroup))
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		Expect(content.Status.VolumeSnapshotInfoList).To(BeEmpty())
		w.deleteGroupAsSnapshotController(content)
		w.settleGroups()
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("that names a group snapshot which isn't there says so", func() {
		w := newCSIWorld("classes")
		content := staticGroup("by-hand")
		w.create(content)

		w.settleGroups()

		w.get(content)
		Expect(*content.Status.Error.Message).To(ContainSubstring("there is no group snapshot " + theGroup))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("GroupSnapshotContentCheckandUpdateFailed")))
	})

	It("isn't made again where the storage loses it before it is ready", func() {
		w, content := toBeGrouped()
		w.storage.SetUploading(true)
		w.settleGroups()
		w.get(content)
		var handles []string
		for _, member := range content.Status.VolumeSnapshotInfoList {
			handles = append(handles, member.SnapshotHandle)
		}
		Expect(w.driver.DeleteGroupSnapshot(context.Background(), theGroup, handles)).To(Succeed())
		w.storage.SetUploading(false)

		w.settleGroups()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeFalse())
		Expect(*content.Status.Error.Message).To(ContainSubstring("there is no group snapshot"))
		Expect(w.driver.Groups()).To(BeEmpty())
	})

	It("isn't deleted by a cache that shows it before its policy became Retain", func() {
		w, content := grouped()
		w.deleteGroupAsSnapshotController(content)
		w.get(content)
		w.views.groups.Client = oldState[*groupsnapshotv1.VolumeGroupSnapshotContent]{w.views.groups.Client, content.DeepCopy()}
		update(w, content, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})

		_ = w.reconcileGroups()

		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	DescribeTable("is refused", func(change func(*world, *groupsnapshotv1.VolumeGroupSnapshotContent, *groupsnapshotv1.VolumeGroupSnapshotClass), says string) {
		w, _, pv := madeByDriver()
		content, class := dynamicGroup(pv.Spec.CSI.VolumeHandle), groupClass()
		change(w, content, class)
		w.create(content, class)

		_ = w.reconcileGroups()

		w.get(content)
		Expect(*content.Status.Error.Message).To(ContainSubstring(says))
		Expect(content.Annotations).NotTo(HaveKey(snapshots.GroupBeingCreated))
		Expect(w.driver.Groups()).To(BeEmpty())
	},
		Entry("without a class", func(_ *world, content *groupsnapshotv1.VolumeGroupSnapshotContent, _ *groupsnapshotv1.VolumeGroupSnapshotClass) {
			content.Spec.VolumeGroupSnapshotClassName = nil
		}, "names no VolumeGroupSnapshotClass"),
		Entry("of a class that isn't there", func(_ *world, _ *groupsnapshotv1.VolumeGroupSnapshotContent, class *groupsnapshotv1.VolumeGroupSnapshotClass) {
			class.Name = "other"
		}, "VolumeGroupSnapshotClass cold does not exist"),
		Entry("of another driver's class", func(_ *world, _ *groupsnapshotv1.VolumeGroupSnapshotContent, class *groupsnapshotv1.VolumeGroupSnapshotClass) {
			class.Driver = "other.example.com"
		}, `is of driver "other.example.com"`),
		Entry("of a class that names another Secret", func(_ *world, _ *groupsnapshotv1.VolumeGroupSnapshotContent, class *groupsnapshotv1.VolumeGroupSnapshotClass) {
			class.Parameters["csi.storage.k8s.io/group-snapshotter-secret-name"] = "other"
		}, "calls have the Secret in spec.csi.secrets.provision"),
		Entry("of a volume that isn't there", func(_ *world, content *groupsnapshotv1.VolumeGroupSnapshotContent, _ *groupsnapshotv1.VolumeGroupSnapshotClass) {
			content.Spec.Source.VolumeHandles[0] += "-other"
		}, "there is no volume"),
		Entry("of a volume twice", func(_ *world, content *groupsnapshotv1.VolumeGroupSnapshotContent, _ *groupsnapshotv1.VolumeGroupSnapshotClass) {
			content.Spec.Source.VolumeHandles = append(content.Spec.Source.VolumeHandles, content.Spec.Source.VolumeHandles[0])
		}, "names a volume twice"),
		Entry("of more volumes than an object can list", func(_ *world, content *groupsnapshotv1.VolumeGroupSnapshotContent, _ *groupsnapshotv1.VolumeGroupSnapshotClass) {
			for i := range backend.MaxGroup {
				content.Spec.Source.VolumeHandles = append(content.Spec.Source.VolumeHandles, fmt.Sprint(i))
			}
		}, "select 1 to 1000"),
		Entry("of a driver of Stowage's", func(w *world, content *groupsnapshotv1.VolumeGroupSnapshotContent, class *groupsnapshotv1.VolumeGroupSnapshotClass) {
			content.Spec.Driver, class.Driver = stowagev1alpha1.LocalDriver, stowagev1alpha1.LocalDriver
			w.create(LocalBackend("disks"))
		}, "make a VolumeSnapshot of each claim"),
	)

	It("of a driver that is not served is left alone", func() {
		w := newCSIWorld("classes")
		content := dynamicGroup("v")
		content.Spec.Driver = "other.example.com"
		w.create(content, groupClass())

		w.settleGroups()

		w.get(content)
		Expect(content.Status).To(BeNil())
	})
})

var _ = Describe("The VolumeSnapshotContent of a group's member", func() {
	It("waits for its handle, and is ready once its snapshot is", func() {
		w, group := grouped()
		member := memberOf(group, 0)
		status := member.Status
		member.Status = nil
		w.create(member)
		w.settleSnapshots()
		w.get(member)
		Expect(member.Status).To(BeNil())
		Expect(w.storage.Snapshots()).To(HaveLen(2))

		w.recordAsSnapshotController(member, status)
		w.settleSnapshots()

		w.get(member)
		Expect(*member.Status.ReadyToUse).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(2))
	})

	It("goes without its snapshot, which goes with the group", func() {
		w, group := grouped()
		member := memberOf(group, 0)
		status := member.Status
		w.create(member)
		w.recordAsSnapshotController(member, status)
		w.settleSnapshots()
		w.deleteAsSnapshotController(member)

		w.settleSnapshots()

		Expect(w.gone(member)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(2))
		w.deleteGroupAsSnapshotController(group)
		w.settleGroups()
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})
})

// toBeGrouped is a cluster with two volumes of the driver, and the content of their group snapshot to come.
func toBeGrouped() (*world, *groupsnapshotv1.VolumeGroupSnapshotContent) {
	GinkgoHelper()
	w, _, pv := madeByDriver()
	other := Claim(InClass("kept"), ClaimNamed("log"))
	w.create(other)
	w.settle()
	w.get(other)
	second := Volume(other.Spec.VolumeName)
	w.get(second)
	content := dynamicGroup(pv.Spec.CSI.VolumeHandle, second.Spec.CSI.VolumeHandle)
	w.create(groupClass(), content)
	w.newEvents()
	return w, content
}

// grouped is the same cluster with the group snapshot.
func grouped() (*world, *groupsnapshotv1.VolumeGroupSnapshotContent) {
	GinkgoHelper()
	w, content := toBeGrouped()
	w.settleGroups()
	w.get(content)
	Expect(w.driver.Groups()).To(HaveLen(1))
	w.newEvents()
	return w, content
}

func groupClass() *groupsnapshotv1.VolumeGroupSnapshotClass {
	return &groupsnapshotv1.VolumeGroupSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "cold"}, Driver: csiDriver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		Parameters: map[string]string{"tier": "cold", "csi.storage.k8s.io/group-snapshotter-secret-name": "maker"},
	}
}

// dynamicGroup is what snapshot-controller makes for a VolumeGroupSnapshot.
func dynamicGroup(volumes ...string) *groupsnapshotv1.VolumeGroupSnapshotContent {
	return &groupsnapshotv1.VolumeGroupSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "groupsnapcontent-g1", Finalizers: []string{snapshots.GroupContentProtection}},
		Spec: groupsnapshotv1.VolumeGroupSnapshotContentSpec{
			VolumeGroupSnapshotRef: corev1.ObjectReference{Namespace: "default", Name: "shop", UID: types.UID("g1")},
			DeletionPolicy:         snapshotv1.VolumeSnapshotContentDelete, Driver: csiDriver, VolumeGroupSnapshotClassName: new("cold"),
			Source: groupsnapshotv1.VolumeGroupSnapshotContentSource{VolumeHandles: volumes},
		},
	}
}

// staticGroup is what a person makes for the group snapshot.
func staticGroup(name string) *groupsnapshotv1.VolumeGroupSnapshotContent {
	content := dynamicGroup()
	content.Name, content.Spec.VolumeGroupSnapshotClassName, content.Spec.VolumeGroupSnapshotRef.UID = name, nil, types.UID(name)
	content.Spec.Source = groupsnapshotv1.VolumeGroupSnapshotContentSource{GroupSnapshotHandles: &groupsnapshotv1.GroupSnapshotHandles{
		VolumeGroupSnapshotHandle: theGroup, VolumeSnapshotHandles: membersByName(),
	}}
	return content
}

// membersByName are the handles that the driver gives the snapshots of both volumes.
func membersByName() (handles []string) {
	for _, claim := range []*corev1.PersistentVolumeClaim{Claim(), Claim(ClaimNamed("log"))} {
		if err := apiServer.Get(context.Background(), client.ObjectKeyFromObject(claim), claim); err == nil {
			handles = append(handles, "snapshots/groupsnapshot-g1 of "+claim.Spec.VolumeName)
		}
	}
	return append(handles, "snapshots/of-nothing")
}

// memberOf is the content that snapshot-controller makes for a member of a group, with the status that it gives it next.
func memberOf(group *groupsnapshotv1.VolumeGroupSnapshotContent, number int) *snapshotv1.VolumeSnapshotContent {
	info := group.Status.VolumeSnapshotInfoList[number]
	content := dynamicContent(fmt.Sprintf("member-%d", number), info.VolumeHandle)
	content.Spec.VolumeSnapshotClassName = nil
	metav1.SetMetaDataAnnotation(&content.ObjectMeta, groupMember, *group.Status.VolumeGroupSnapshotHandle)
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{
		SnapshotHandle: &info.SnapshotHandle, VolumeGroupSnapshotHandle: group.Status.VolumeGroupSnapshotHandle, ReadyToUse: new(false),
	}
	return content
}

func (w *world) recordAsSnapshotController(content *snapshotv1.VolumeSnapshotContent, status *snapshotv1.VolumeSnapshotContentStatus) {
	GinkgoHelper()
	w.get(content)
	before := content.DeepCopy()
	content.Status = status
	Expect(w.direct.Status().Patch(context.Background(), content, client.MergeFrom(before))).To(Succeed())
}

// deleteGroupAsSnapshotController deletes a content whose VolumeGroupSnapshot was deleted.
func (w *world) deleteGroupAsSnapshotController(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
	GinkgoHelper()
	update(w, content, func(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.GroupBeingDeleted, "yes")
	})
	w.delete(content)
}

func (w *world) reconcileGroups() error {
	var failures []error
	for _, object := range w.all(&groupsnapshotv1.VolumeGroupSnapshotContentList{}) {
		_, err := w.groups.Reconcile(w.logging(), wake.Request(object))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (w *world) settleGroups() {
	GinkgoHelper()
	w.settleBy(w.reconcileGroups)
}

func (w *world) settleGroupsAfterCrashes() {
	GinkgoHelper()
	w.settleAfterCrashes(w.reconcileGroups)
}
