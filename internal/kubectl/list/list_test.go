package list_test

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	"github.com/stowage-dev/stowage/internal/kubectl/list"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// objects are a bound local volume, a released one within its window, and one of another driver.
func objects() []client.Object {
	backend := LocalBackend("fast")
	local := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.LocalDriver, VolumeHandle: pv.Name, VolumeAttributes: map[string]string{"backend": "fast"},
		}}
	}
	bound := Volume("bound", local, OnNode("node-1"), ReservedTo("data"), Reclaimed(corev1.PersistentVolumeReclaimDelete))
	bound.Status.Phase = corev1.VolumeBound
	released := Volume("released", local, OnNode("node-2"), ReservedTo("old"), Reclaimed(corev1.PersistentVolumeReclaimDelete))
	released.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased, Reason: "UndeletableUntil2030-01-02T13:00:00Z"}
	nodeVolume := &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"},
		Status: stowagev1alpha1.NodeVolumeStatus{
			Used:       ptr.To(resource.MustParse("512Mi")),
			Conditions: []metav1.Condition{{Type: "Healthy", Status: metav1.ConditionFalse, Reason: "VolumeNearlyFull", Message: "2 % is left"}},
		},
	}
	foreign := Volume("foreign", ReservedTo("other"))
	return []client.Object{backend, bound, released, nodeVolume, foreign}
}

func TestListShowsTheVolumesThatWereAskedFor(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "NAME CLAIM BACKEND NODE SIZE USED PHASE HEALTH RETAINED UNTIL\n" +
			"bound default/data fast node-1 1Gi 512Mi Bound VolumeNearlyFull -\n" +
			"released default/old fast node-2 1Gi - Released - 2030-01-02T13:00:00Z\n",
		"--node node-2": "NAME CLAIM BACKEND NODE SIZE USED PHASE HEALTH RETAINED UNTIL\n" +
			"released default/old fast node-2 1Gi - Released - 2030-01-02T13:00:00Z\n",
		"--retained": "NAME CLAIM BACKEND NODE SIZE USED PHASE HEALTH RETAINED UNTIL\n" +
			"released default/old fast node-2 1Gi - Released - 2030-01-02T13:00:00Z\n",
		"--node node-1 -o wide": "NAME CLAIM BACKEND NODE SIZE USED PHASE HEALTH RETAINED UNTIL DRIVER CLASS POLICY HANDLE PROBLEM\n" +
			"bound default/data fast node-1 1Gi 512Mi Bound VolumeNearlyFull - local.stowage.dev - Delete bound 2 % is left\n",
		"--backend other": "",
		"-n shop --all":   "",
	} {
		t.Run(arguments, func(t *testing.T) {
			got, err := kubectltest.Run(t.Context(), list.New, arguments, kubectltest.Client(objects()...))
			if shown := squeezed(got.Out); err != nil || shown != want {
				t.Errorf("%v\n%s", err, shown)
			}
			if want == "" && !strings.Contains(got.Err, "no volumes were found") {
				t.Errorf("noted %q", got.Err)
			}
		})
	}
}

// squeezed has one space between columns.
func squeezed(text string) string {
	var lines string
	for line := range strings.Lines(text) {
		lines += strings.Join(strings.Fields(line), " ") + "\n"
	}
	return lines
}

// undeletable is a content that keeps the snapshot of a deleted VolumeSnapshot.
func undeletable(name, namespace, of string) *snapshotv1.VolumeSnapshotContent {
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(kubectltest.Now),
			Labels: map[string]string{stowagev1alpha1.UndeletableLabel: of, stowagev1alpha1.BackendLabel: "fast"},
		},
		Status: &snapshotv1.VolumeSnapshotContentStatus{RestoreSize: ptr.To[int64](1 << 30)},
	}
	content.Spec.Driver, content.Spec.Source.SnapshotHandle = stowagev1alpha1.LocalDriver, ptr.To("snapshot-1")
	content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: namespace, Name: "nightly"}
	return content
}

func TestListShowsTheSnapshotsThatCanComeBack(t *testing.T) {
	backend := LocalBackend("fast")
	backend.UID, backend.Spec.Deletion.RetainSnapshotsFor = "u1", metav1.Duration{Duration: time.Hour}
	others := undeletable("taken", "shop", "")
	others.Labels = nil
	with := []client.Object{backend, undeletable("undeletable-2", "shop", "u1"), undeletable("undeletable-1", "bank", "u0"), others}
	const titles = "Snapshots\nNAME VOLUMESNAPSHOT BACKEND SIZE RETAINED UNTIL\n"
	const kept, until = "undeletable-1 bank/nightly fast 1Gi kept\n", "undeletable-2 shop/nightly fast 1Gi 2030-01-02T13:00:00Z\n"
	for arguments, want := range map[string]string{
		"--retained":                 titles + kept + until,
		"--retained -n shop":         titles + until,
		"--retained --backend other": "",
		"--retained --node node-1":   "",
		"":                           "",
		"--retained -n shop -o wide": "Snapshots\nNAME VOLUMESNAPSHOT BACKEND SIZE RETAINED UNTIL DRIVER HANDLE\n" +
			"undeletable-2 shop/nightly fast 1Gi 2030-01-02T13:00:00Z local.stowage.dev snapshot-1\n",
	} {
		t.Run(arguments, func(t *testing.T) {
			got, err := kubectltest.Run(t.Context(), list.New, arguments, kubectltest.Client(with...))
			if shown := squeezed(got.Out); err != nil || shown != want {
				t.Errorf("%v\n%s", err, shown)
			}
		})
	}
}

func TestListShowsVolumesOfServedCSIDrivers(t *testing.T) {
	backend := LocalBackend("disk.example.com")
	backend.Spec.Local, backend.Spec.CSI = nil, &stowagev1alpha1.CSIBackend{Driver: "disk.example.com"}
	served := Volume("served", ReservedTo("data"))
	served.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "1"}}
	got, err := kubectltest.Run(t.Context(), list.New, "--backend disk.example.com", kubectltest.Client(append(objects(), backend, served)...))
	want := "NAME CLAIM BACKEND NODE SIZE USED PHASE HEALTH RETAINED UNTIL\n" +
		"served default/data disk.example.com - 1Gi - - - -\n"
	if shown := squeezed(got.Out); err != nil || shown != want {
		t.Errorf("%v\n%s", err, shown)
	}
}

func TestListShowsOtherDriversVolumes(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), list.New, "--all -o json", kubectltest.Client(objects()...))
	if err != nil || !strings.Contains(got.Out, `"name": "foreign"`) {
		t.Errorf("%v\n%s", err, got.Out)
	}
}
