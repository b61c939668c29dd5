package volumesnapshotcontent

import (
	"context"
	"slices"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

func TestWhatStowageWritesItselfDoesNotWake(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*snapshotv1.VolumeSnapshotContent)
		wakes  bool
	}{
		"its mark of an open call": {func(content *snapshotv1.VolumeSnapshotContent) {
			metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingCreated, "yes")
		}, false},
		"the name of its StorageBackend": {func(content *snapshotv1.VolumeSnapshotContent) {
			content.Labels = map[string]string{"a": "b", stowagev1alpha1.BackendLabel: "disks"}
		}, false},
		"its status": {func(content *snapshotv1.VolumeSnapshotContent) {
			content.Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: new(false)}
		}, false},
		"the end of its VolumeSnapshot": {func(content *snapshotv1.VolumeSnapshotContent) {
			metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingDeleted, "yes")
		}, true},
		"its deletion": {func(content *snapshotv1.VolumeSnapshotContent) { content.DeletionTimestamp = new(metav1.Now()) }, true},
		"its policy": {func(content *snapshotv1.VolumeSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		}, true},
	} {
		before := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "content", ResourceVersion: "1", Labels: map[string]string{"a": "b"}}}
		now := before.DeepCopy()
		now.ResourceVersion = "2"
		test.change(now)
		if wakes := byOthers().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now}); wakes != test.wakes {
			t.Errorf("%s wakes: %t", name, wakes)
		}
	}
}

func TestTheStatusOfAGroupsMemberWakesWhereSnapshotControllerWroteIt(t *testing.T) {
	const member = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"
	status := func(handle string, ready bool, failure *snapshotv1.VolumeSnapshotError) *snapshotv1.VolumeSnapshotContentStatus {
		return &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle, ReadyToUse: &ready, Error: failure}
	}
	for name, test := range map[string]struct {
		before, now *snapshotv1.VolumeSnapshotContentStatus
		wakes       bool
	}{
		"its handle":                        {nil, status("a", false, nil), true},
		"a member that isn't ready again":   {status("a", true, nil), status("a", false, nil), true},
		"a member that is ready":            {status("a", false, nil), status("a", true, nil), false},
		"an error, which is Stowage's own":  {status("a", true, nil), status("a", false, &snapshotv1.VolumeSnapshotError{}), false},
		"a status without a handle":         {nil, &snapshotv1.VolumeSnapshotContentStatus{}, false},
		"a status that is as it was before": {status("a", false, nil), status("a", false, nil), false},
	} {
		before := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "content", Annotations: map[string]string{member: "g"}}, Status: test.before}
		now := before.DeepCopy()
		now.Status = test.now
		if wakes := byOthers().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now}); wakes != test.wakes {
			t.Errorf("%s wakes: %t", name, wakes)
		}
	}
}

func TestAllContentsOfASnapshotThatANodeRemovedWake(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := snapshotv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	content := func(name, handle string, finalizers ...string) *snapshotv1.VolumeSnapshotContent {
		made := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
		made.Spec.Source.SnapshotHandle = &handle
		if len(finalizers) > 0 {
			made.DeletionTimestamp = new(metav1.Now())
		}
		return made
	}
	cluster := indexed{fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		content("deleted", "snapshot-1", "kept"), content("not-deleted", "snapshot-1"), content("of-another", "snapshot-2", "kept"),
		content("snapcontent-1", "", "kept"))}
	if err := index.AddContents(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	removed := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: "snapshot-1", DeletionTimestamp: new(metav1.Now())}}
	removed.Spec.SnapshotUID = "1"
	r := &Reconciler{client: cluster.Build(), storage: &opener.Opener{}}
	var woken []string
	for _, request := range r.contentsOfNodeVolume(t.Context(), removed) {
		woken = append(woken, request.Name)
	}
	slices.Sort(woken)
	if want := []string{"deleted", "snapcontent-1"}; !slices.Equal(woken, want) {
		t.Errorf("there wake %q, not %q", woken, want)
	}
}

// indexed is a client that is built with indexes.
type indexed struct{ *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (c indexed) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	c.WithIndex(object, field, values)
	return nil
}
