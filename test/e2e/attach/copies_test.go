package attach_test

import (
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// from has a claim begin as a copy of something.
func from(source corev1.TypedLocalObjectReference) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.DataSource = &source }
}

// copied: a larger copy of a disk, on the node of its source.
func copied(s *spec) {
	var clone *corev1.PersistentVolumeClaim
	scenario.Step("a claim that names another one is given a copy of its disk", func() (err error) {
		clone, err = s.claimFor("copy", patientClass, fixture.Asking("15Gi"), from(corev1.TypedLocalObjectReference{Kind: provisioned.ClaimKind, Name: s.data.Name}))
		return err
	})
	ofSource, ofClone := s.pod("of-source", 1, s.data), s.pod("of-copy", 1, clone)
	scenario.Step("pods of one node use both, and find the file", func() error {
		return errors.Join(s.run(ofSource, ofClone), s.finds(ofSource, s.data, "kept"), s.finds(ofClone, clone, "kept"))
	})
	scenario.Step("the copy's file system is as large as its disk", func() error { return s.holds(ofClone, clone, 14*gibibyte) })
	scenario.Step("what is written to the copy isn't in its source", func() error {
		return errors.Join(s.writes(ofClone, clone, "of the copy"), s.finds(ofSource, s.data, "kept"))
	})
	scenario.Step("the copy goes with its claim, and its source stays", func() error {
		return errors.Join(s.end(ofSource, ofClone), s.stowage.Delete(s.ctx, clone), s.diskGoes(clone), s.isDetachedSoon(s.data))
	})
}

// restored: a disk with what another one had when its snapshot was made.
func restored(s *spec) {
	snapshot, content := s.takeSnapshot("then", s.data)
	scenario.Step("the file is written again", func() error {
		later := s.pod("later", 2, s.data)
		return errors.Join(s.run(later), s.writes(later, s.data, "since then"), s.end(later))
	})
	var again *corev1.PersistentVolumeClaim
	scenario.Step("a claim that names the snapshot is given what there was", func() (err error) {
		again, err = s.claimFor("restored", patientClass, fixture.Asking("12Gi"), fromSnapshot(snapshot))
		return err
	})
	ofRestored := s.pod("of-restored", 1, again)
	scenario.Step("its pod finds the earlier file", func() error {
		return errors.Join(s.run(ofRestored), s.finds(ofRestored, again, "kept"), s.end(ofRestored))
	})
	scenario.Step("the snapshot is deleted, and the restored disk with its claim", func() error {
		return errors.Join(s.deleteSnapshot(content), s.stowage.Delete(s.ctx, again), s.diskGoes(again))
	})
	scenario.Soon(s.ctx, "the cloud has no snapshot", s.hasNoSnapshot)
	scenario.Step("the first disk has its file again", func() error {
		pod := s.pod("kept-again", 1, s.data)
		return errors.Join(s.run(pod), s.finds(pod, s.data, "since then"), s.writes(pod, s.data, "kept"), s.end(pod))
	})
}

// takeSnapshot makes a snapshot of a claim's disk, which is ready then.
func (s *spec) takeSnapshot(name string, of *corev1.PersistentVolumeClaim) (*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent) {
	snapshot, content := s.snapshotOf(name, of)
	scenario.Step("a snapshot "+name+" is made of the disk", func() error { return s.stowage.Client.Create(s.ctx, content) })
	scenario.Soon(s.ctx, "it is ready", func() error {
		err := s.stowage.Client.Get(s.ctx, client.ObjectKeyFromObject(content), content)
		if err == nil && (content.Status == nil || content.Status.ReadyToUse == nil || !*content.Status.ReadyToUse) {
			err = fmt.Errorf("its status is %+v", content.Status)
		}
		return err
	})
	scenario.Step("its VolumeSnapshot says so", func() error {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content.Name, ReadyToUse: new(true)}
		return s.stowage.Client.Status().Update(s.ctx, snapshot)
	})
	return snapshot, content
}

// snapshotOf creates a snapshot of a claim's disk and its class, and returns the content that
// snapshot-controller would make: no such program runs here.
func (s *spec) snapshotOf(name string, claim *corev1.PersistentVolumeClaim) (*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent) {
	class := &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Driver: stowagev1alpha1.GCEDriver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: &class.Name, Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim.Name},
		},
	}
	scenario.Step("a VolumeSnapshot names the claim", func() error {
		return errors.Join(client.IgnoreAlreadyExists(s.stowage.Client.Create(s.ctx, class)), s.stowage.Client.Create(s.ctx, snapshot))
	})
	return snapshot, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(snapshot.UID), Finalizers: []string{snapshots.ContentProtection}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID},
			DeletionPolicy:    class.DeletionPolicy, Driver: class.Driver, VolumeSnapshotClassName: &class.Name,
			Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &claim.Spec.VolumeName},
		},
	}
}

// fromSnapshot has a claim begin as a copy of a snapshot.
func fromSnapshot(snapshot *snapshotv1.VolumeSnapshot) func(*corev1.PersistentVolumeClaim) {
	return from(corev1.TypedLocalObjectReference{APIGroup: new(provisioned.SnapshotGroup), Kind: provisioned.SnapshotKind, Name: snapshot.Name})
}

// deleteSnapshot deletes the content of a snapshot, as snapshot-controller does, and waits until it is gone.
func (s *spec) deleteSnapshot(content *snapshotv1.VolumeSnapshotContent) error {
	err := s.stowage.Change(s.ctx, content, func() { metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingDeleted, "yes") })
	if err != nil {
		return err
	}
	return s.stowage.Delete(s.ctx, content)
}

func (s *spec) hasNoSnapshot() error {
	list, err := s.cloud.Snapshots.List(project).Context(s.ctx).Do()
	if err == nil && len(list.Items) > 0 {
		err = fmt.Errorf("it has %s", list.Items[0].Name)
	}
	return err
}

// holds reports whether the file system of a pod's claim has so many bytes.
func (s *spec) holds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, least int64) error {
	var size int64
	err := s.stowage.NodeOf(pod).Call(s.ctx, "Devices.Capacity", inClaim(pod, claim), &size)
	if err == nil && size < least {
		err = fmt.Errorf("it can hold %d bytes", size)
	}
	return err
}
