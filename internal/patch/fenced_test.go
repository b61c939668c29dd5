package patch_test

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/patch"
)

var marked = metav1.ObjectMeta{
	Name: "one", ResourceVersion: "7", Labels: map[string]string{"kept": "yes"},
	Annotations: map[string]string{"kept": "yes", "replaced": "before", "removed": "yes"}, Finalizers: []string{"kept", "removed"},
}

func everyKind() map[string]client.Object {
	return map[string]client.Object{
		"a claim":       &corev1.PersistentVolumeClaim{ObjectMeta: marked, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "volume"}},
		"a volume":      &corev1.PersistentVolume{ObjectMeta: marked, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}},
		"an attachment": &storagev1.VolumeAttachment{ObjectMeta: marked, Spec: storagev1.VolumeAttachmentSpec{Attacher: "driver"}},
		"a NodeVolume":  &stowagev1alpha1.NodeVolume{ObjectMeta: marked, Spec: stowagev1alpha1.NodeVolumeSpec{NodeName: "node"}},
		"a node":        &corev1.Node{ObjectMeta: marked},
	}
}

var changes = map[string]func(client.Object){
	"finalizers":         func(object client.Object) { object.SetFinalizers([]string{"kept"}) },
	"the last finalizer": func(object client.Object) { object.SetFinalizers(nil) },
	"annotations": func(object client.Object) {
		object.SetAnnotations(map[string]string{"kept": "yes", "replaced": "now", "added": "yes"})
	},
	"all annotations": func(object client.Object) { object.SetAnnotations(nil) },
	"finalizers and labels": func(object client.Object) {
		object.SetFinalizers(nil)
		object.SetLabels(map[string]string{"added": "yes"})
	},
	"finalizers and more": func(object client.Object) {
		object.SetFinalizers(nil)
		switch object := object.(type) {
		case *corev1.PersistentVolumeClaim:
			object.Spec.VolumeName = ""
		case *corev1.PersistentVolume:
			object.Status.Phase = corev1.VolumeReleased
		case *storagev1.VolumeAttachment:
			object.Status.Attached = true
		case *stowagev1alpha1.NodeVolume:
			object.Spec.Source = "source"
		}
	},
	"nothing": func(client.Object) {},
}

// A fenced patch makes of the object before what is written, and carries the version that it applies to.
func TestAFencedPatchHasAllThatChanged(t *testing.T) {
	for kind, before := range everyKind() {
		for changed, change := range changes {
			t.Run(changed+" of "+kind, func(t *testing.T) {
				after := before.DeepCopyObject().(client.Object)
				change(after)
				data, err := patch.Fenced(before).Data(after)
				if err != nil {
					t.Fatal(err)
				}
				if got := patched(t, before, data); !apiequality.Semantic.DeepEqual(got, after) {
					t.Errorf("%s makes of it %+v, not %+v", data, got, after)
				}
				if got := versionIn(t, data); got != marked.ResourceVersion {
					t.Errorf("%s is fenced by version %q", data, got)
				}
			})
		}
	}
}

func TestAPatchOfFinalizersHasNothingElse(t *testing.T) {
	for kind, before := range everyKind() {
		after := before.DeepCopyObject().(client.Object)
		after.SetFinalizers(nil)
		data, err := patch.Fenced(before).Data(after)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"metadata":{"resourceVersion":"7","finalizers":[]}}`
		if _, isNode := before.(*corev1.Node); !isNode && string(data) != want {
			t.Errorf("of %s it is %s, not %s", kind, data, want)
		}
	}
}

// An object of another kind is none that before became.
func TestAPatchToAnotherKindIsComputed(t *testing.T) {
	data, err := patch.Fenced(&corev1.PersistentVolume{ObjectMeta: marked}).Data(&corev1.PersistentVolumeClaim{ObjectMeta: marked})
	if err == nil && string(data) == `{"metadata":{"resourceVersion":"7"}}` {
		t.Errorf("it is %s", data)
	}
}

func patched(t *testing.T, before client.Object, data []byte) client.Object {
	t.Helper()
	original, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(original, data)
	if err != nil {
		t.Fatal(err)
	}
	got := reflect.New(reflect.TypeOf(before).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(merged, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func versionIn(t *testing.T, data []byte) string {
	t.Helper()
	var sent struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(data, &sent); err != nil {
		t.Fatal(err)
	}
	return sent.Metadata.ResourceVersion
}
