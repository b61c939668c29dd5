package undelete_test

import (
	"context"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
)

// undeletable is a content that keeps the snapshot of VolumeSnapshot shop/nightly.
func undeletable(changes ...func(*snapshotv1.VolumeSnapshotContent)) *snapshotv1.VolumeSnapshotContent {
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{
		Name: "undeletable-1", Labels: map[string]string{stowagev1alpha1.UndeletableLabel: "u1"},
	}}
	content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "nightly"}
	for _, change := range changes {
		change(content)
	}
	return content
}

// nightly is a VolumeSnapshot of a content.
func nightly(content string) *snapshotv1.VolumeSnapshot {
	made := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}}
	made.Spec.Source.VolumeSnapshotContentName = &content
	return made
}

// bindingSnapshots is a client whose VolumeSnapshots are bound and ready once they are created.
func bindingSnapshots(objects ...client.Object) client.Client {
	return interceptor.NewClient(kubectltest.Client(objects...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if made, is := object.(*snapshotv1.VolumeSnapshot); is {
				bind(made)
			}
			return c.Create(ctx, object, options...)
		},
	})
}

func bind(made *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshot {
	made.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: made.Spec.Source.VolumeSnapshotContentName, ReadyToUse: ptr.To(true)}
	return made
}

func TestUndeleteCreatesTheVolumeSnapshotThatThereWas(t *testing.T) {
	for _, kind := range []string{"volumesnapshotcontent", "vsc"} {
		b := bindingSnapshots(undeletable())
		got, err := run(t, b, kind+"/undeletable-1")
		made := &snapshotv1.VolumeSnapshot{}
		if missing := b.Get(t.Context(), client.ObjectKeyFromObject(nightly("")), made); err != nil || missing != nil {
			t.Fatalf("%v, %v", err, missing)
		}
		if got.Out != "VolumeSnapshot shop/nightly has its snapshot again, and is ready.\n" || *made.Spec.Source.VolumeSnapshotContentName != "undeletable-1" {
			t.Errorf("%s made %+v", got.Out, made.Spec)
		}
	}
}

func TestUndeleteGoesOnWithTheVolumeSnapshotOfAnEarlierRun(t *testing.T) {
	taken := undeletable(func(content *snapshotv1.VolumeSnapshotContent) { content.Labels = nil })
	if _, err := run(t, kubectltest.Client(taken, bind(nightly("undeletable-1"))), "vsc/undeletable-1"); err != nil {
		t.Error(err)
	}
}

func TestUndeleteAsksWhetherASnapshotCouldComeBack(t *testing.T) {
	b := bindingSnapshots(undeletable())
	got, err := run(t, b, "vsc/undeletable-1 --dry-run=server")
	if err != nil || !strings.Contains(got.Out, "would be created") {
		t.Errorf("%s, %v", got.Out, err)
	}
	if b.Get(t.Context(), client.ObjectKeyFromObject(nightly("")), &snapshotv1.VolumeSnapshot{}) == nil {
		t.Error("it is there")
	}
}

func TestUndeleteRefusesASnapshotThatCanNotComeBack(t *testing.T) {
	going := undeletable(func(content *snapshotv1.VolumeSnapshotContent) {
		content.Finalizers, content.DeletionTimestamp = []string{"keep"}, ptr.To(metav1.NewTime(kubectltest.Now))
	})
	taken := undeletable(func(content *snapshotv1.VolumeSnapshotContent) { content.Labels = nil })
	for name, test := range map[string]struct {
		objects         []client.Object
		arguments, want string
	}{
		"that is deleted":                {[]client.Object{going}, "vsc/undeletable-1", "is being deleted, and its snapshot with it"},
		"in no window":                   {[]client.Object{taken}, "vsc/undeletable-1", "isn't in an undelete window"},
		"that isn't there":               {nil, "vsc/undeletable-1", "kubectl stowage list --retained has the names"},
		"whose name another has":         {[]client.Object{undeletable(), nightly("other")}, "vsc/undeletable-1", "exists, and is another"},
		"for another VolumeSnapshot":     {[]client.Object{undeletable()}, "vsc/undeletable-1 --to shop/other", "--to is for volumes"},
		"without a name":                 {nil, "vsc/", "has no name"},
		"that is of another kind":        {nil, "pod/undeletable-1", "can't come back"},
		"that no controller binds again": {[]client.Object{undeletable()}, "vsc/undeletable-1", "isn't ready yet"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, kubectltest.Client(test.objects...), test.arguments); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
