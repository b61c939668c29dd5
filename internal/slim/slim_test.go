package slim

import (
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestWhatIsReadStays(t *testing.T) {
	object := metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"disk": "ssd"},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/rack": "7"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
	kept := metav1.ObjectMeta{Name: "a", Labels: object.Labels, Annotations: map[string]string{"example.com/rack": "7"}}
	capacity := corev1.NodeStatus{Phase: corev1.NodeRunning}
	loaded := capacity
	loaded.Images = []corev1.ContainerImage{{Names: []string{"pause"}}}
	gone := toolscache.DeletedFinalStateUnknown{Key: "a"}
	for name, test := range map[string]struct{ object, want any }{
		"a node":            {&corev1.Node{ObjectMeta: *object.DeepCopy(), Status: loaded}, &corev1.Node{ObjectMeta: kept, Status: capacity}},
		"a bound claim":     {boundClaim(), boundClaim()},
		"a bound volume":    {boundVolume(), boundVolume()},
		"an attachment":     {attachment(), attachment()},
		"a claim, plain":    {&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}},
		"a volume, plain":   {&corev1.PersistentVolume{ObjectMeta: *object.DeepCopy()}, &corev1.PersistentVolume{ObjectMeta: kept}},
		"what is no object": {gone, gone},
	} {
		if got := slimmed(t, test.object); !equality.Semantic.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatManyVolumesHaveAlikeIsKeptOnce(t *testing.T) {
	claims := [2]*corev1.PersistentVolumeClaim{boundClaim(), boundClaim()}
	volumes := [2]*corev1.PersistentVolume{boundVolume(), boundVolume()}
	for i := range claims {
		slimmed(t, claims[i])
		slimmed(t, volumes[i])
	}
	for what, same := range map[string]bool{
		"what claims request":        same(claims[0].Spec.Resources.Requests, claims[1].Spec.Resources.Requests),
		"request and capacity":       same(claims[0].Spec.Resources.Requests, claims[0].Status.Capacity),
		"a claim's and its volume's": same(claims[0].Status.Capacity, volumes[0].Spec.Capacity),
		"annotations":                same(volumes[0].Annotations, volumes[1].Annotations),
		"attributes":                 same(volumes[0].Spec.CSI.VolumeAttributes, volumes[1].Spec.CSI.VolumeAttributes),
		"access modes":               &claims[0].Spec.AccessModes[0] == &volumes[0].Spec.AccessModes[0],
		"finalizers":                 &volumes[0].Finalizers[0] == &volumes[1].Finalizers[0],
		"classes":                    claims[0].Spec.StorageClassName == claims[1].Spec.StorageClassName,
		"drivers":                    unsafe.StringData(volumes[0].Spec.CSI.Driver) == unsafe.StringData(volumes[1].Spec.CSI.Driver),
		"node affinities":            volumes[0].Spec.NodeAffinity == volumes[1].Spec.NodeAffinity,
	} {
		if !same {
			t.Errorf("%s are kept twice", what)
		}
	}
}

func TestSizesOfOneAmountKeepTheirUnit(t *testing.T) {
	small, large := fixture.Claim(fixture.Asking("1Gi")), fixture.Claim(fixture.Asking("1073741824"))
	slimmed(t, small)
	slimmed(t, large)
	for claim, want := range map[*corev1.PersistentVolumeClaim]resource.Format{small: resource.BinarySI, large: resource.DecimalSI} {
		if got := claim.Spec.Resources.Requests[corev1.ResourceStorage]; got.Format != want {
			t.Errorf("%s has format %s, wanted %s", got.String(), got.Format, want)
		}
	}
}

// Two lists of the same words, cut otherwise, are not alike.
func TestOnlyEqualContentIsAlike(t *testing.T) {
	for _, lists := range [][2]map[string]string{
		{{"a": "bc"}, {"ab": "c"}},
		{{"a": "1:b"}, {"a": "1", "b": ""}},
		{{"a": ""}, {"": "a"}},
	} {
		if contentOfMap(lists[0]) == contentOfMap(lists[1]) {
			t.Errorf("%v has the content of %v", lists[0], lists[1])
		}
	}
}

// A table keeps what it has when the objects are gone, so what a tenant writes must not fill it.
func TestALongTextIsNotKept(t *testing.T) {
	long := map[string]string{"example.com/note": strings.Repeat("x", maxContent)}
	for range 2 {
		slimmed(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: long}})
	}
	if _, found := settings.known.Get(contentOfMap(long)); found {
		t.Error("it is kept")
	}
}

// The text of a value may be short, and its memory not.
func TestAValueOfManyEntriesIsNotKept(t *testing.T) {
	many := map[string]string{}
	pod := &corev1.Pod{}
	for i := range maxEntries + 1 {
		many[string(rune('a'+i))] = ""
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: string(rune('a' + i))})
	}
	slimmed(t, pod)
	if len(pod.Status.ContainerStatuses) != maxEntries+1 {
		t.Errorf("it has %d containers", len(pod.Status.ContainerStatuses))
	}
	if contentOfContainers(pod.Status.ContainerStatuses) != "" || contentOfMap(many) != "" {
		t.Error("it is kept")
	}
}

func TestATableForgetsWhatItWasAskedForFirst(t *testing.T) {
	table := newTable(itself)
	for i := range 2 * tableSize {
		table.one(strings.Repeat("x", i%maxContent) + string(rune('a'+i/maxContent)))
	}
	if got := table.known.Len(); got > tableSize {
		t.Errorf("it has %d values", got)
	}
}

// A watch that lists calls the transform twice for each object.
func TestASecondTimeChangesNothing(t *testing.T) {
	for _, object := range []client.Object{boundClaim(), boundVolume(), attachment(), usedPod()} {
		slimmed(t, object)
		before := object.DeepCopyObject()
		slimmed(t, object)
		if !equality.Semantic.DeepEqual(object, before) {
			t.Errorf("%T becomes %+v", object, object)
		}
	}
}

func slimmed(t *testing.T, object any) any {
	t.Helper()
	got, err := Object(object)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same[Map ~map[Key]Value, Key comparable, Value any](one, other Map) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&one)) == *(*unsafe.Pointer)(unsafe.Pointer(&other))
}

func boundClaim() *corev1.PersistentVolumeClaim {
	claim := fixture.Claim(fixture.InClass("fast"), fixture.Asking("3Gi"))
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	claim.Spec.VolumeName, claim.Spec.VolumeMode = "disk", ptr.To(corev1.PersistentVolumeFilesystem)
	claim.Status.Capacity, claim.Status.AccessModes = claim.Spec.Resources.Requests.DeepCopy(), claim.Spec.AccessModes
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "stowage.dev/Bindable", Status: "True", Reason: "Bound", Message: "bound to volume disk"}}
	return claim
}

func boundVolume() *corev1.PersistentVolume {
	pv := fixture.Volume("disk", fixture.OfClass("fast"), fixture.Holding("3Gi"))
	pv.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
	pv.Finalizers = []string{"kubernetes.io/pv-protection"}
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: string([]byte("disks.example.com")), VolumeHandle: "1", VolumeAttributes: map[string]string{"stowage.dev/backend": "fast"},
	}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: "claim", UID: "1"}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}}
	return pv
}

func attachment() *storagev1.VolumeAttachment {
	made := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1"}}
	made.Spec.Attacher, made.Spec.NodeName = "disks.example.com", "node1"
	made.Status.AttachmentMetadata = map[string]string{"devicePath": "/dev/sdb"}
	return made
}
