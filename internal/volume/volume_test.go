package volume_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/volume"
)

const once, many, readers, pod = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod

type modes = []corev1.PersistentVolumeAccessMode

func TestAccessModes(t *testing.T) {
	for name, test := range map[string]struct {
		modes       modes
		multiAttach bool
		onlyReaders bool
	}{
		"none":                        {nil, true, false},
		"one node":                    {modes{once}, false, false},
		"one pod":                     {modes{pod}, false, false},
		"one node or one pod":         {modes{once, pod}, false, false},
		"readers":                     {modes{readers}, true, true},
		"readers, listed twice":       {modes{readers, readers}, true, true},
		"one writing node or readers": {modes{once, readers}, true, false},
		"readers or one writing pod":  {modes{readers, pod}, true, false},
		"writers":                     {modes{many}, true, false},
		"all":                         {modes{once, readers, many}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volume.AllowsMultiAttach(test.modes); got != test.multiAttach {
				t.Errorf("AllowsMultiAttach(%v) = %t", test.modes, got)
			}
			if got := volume.OnlyReaders(test.modes); got != test.onlyReaders {
				t.Errorf("OnlyReaders(%v) = %t", test.modes, got)
			}
			pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{AccessModes: test.modes}}
			if got := volume.IsReadOnly(pv); got != test.onlyReaders {
				t.Errorf("without a csi source it is read-only: %t", got)
			}
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{}
			if got := volume.IsReadOnly(pv); got != test.onlyReaders {
				t.Errorf("with a csi source it is read-only: %t", got)
			}
			pv.Spec.CSI.ReadOnly = true
			if !volume.IsReadOnly(pv) {
				t.Error("with csi.readOnly it can be written")
			}
		})
	}
}

func TestHandles(t *testing.T) {
	path := volume.DiskPath("demo", "europe-west3-a", "data")
	if path != "projects/demo/zones/europe-west3-a/disks/data" || !volume.IsDiskPath(path) {
		t.Errorf("the path of a disk is %q", path)
	}
	for _, handle := range []string{"", "pvc-1", "projects", "disks/projects/data"} {
		if volume.IsDiskPath(handle) {
			t.Errorf("%q is the path of a disk", handle)
		}
	}
}

func TestNames(t *testing.T) {
	// echo -n handledrivernode | sha256sum
	const want = "csi-fdef298eb16db6fa42906ef1ff09a93a7f3028f8290cc9d71628ff91c237bfa7"
	if got := volume.AttachmentName("driver", "handle", "node"); got != want {
		t.Errorf("the attachment is called %s, not %s", got, want)
	}
	name := volume.UniqueName("driver", "a^b")
	if driver, handle, is := volume.ParseUniqueName(name); name != "kubernetes.io/csi/driver^a^b" || driver != "driver" || handle != "a^b" || !is {
		t.Errorf("%s is %s of %s: %t", name, handle, driver, is)
	}
	for _, name := range []corev1.UniqueVolumeName{"", "kubernetes.io/iscsi/portal:iqn:0", "kubernetes.io/csi/driver"} {
		if _, _, is := volume.ParseUniqueName(name); is {
			t.Errorf("%q is a name of a CSI volume", name)
		}
	}
}

func TestClaimName(t *testing.T) {
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for want, source := range map[string]corev1.VolumeSource{
		"data":        {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
		"web-scratch": {Ephemeral: &corev1.EphemeralVolumeSource{}},
		"":            {EmptyDir: &corev1.EmptyDirVolumeSource{}},
	} {
		if got := volume.ClaimName(owner, &corev1.Volume{Name: "scratch", VolumeSource: source}); got != want {
			t.Errorf("the claim is %q, not %q", got, want)
		}
	}
}

func TestTheEndOfAnUndeleteWindowIsReadAsItWasWritten(t *testing.T) {
	end := time.Date(2030, 1, 2, 13, 0, 0, 0, time.UTC)
	pv := &corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Reason: volume.UndeletableReason(end.In(time.FixedZone("", 3600)))}}
	if got, in := volume.UndeletableUntil(pv); pv.Status.Reason != "UndeletableUntil2030-01-02T13:00:00Z" || !in || !got.Equal(end) || !volume.InUndeleteWindow(pv) {
		t.Errorf("of %s: got %s, %t", pv.Status.Reason, got, in)
	}
	for _, other := range []string{"", "VolumeFailedDelete", "UndeletableUntilThen"} {
		pv.Status.Reason = other
		if got, in := volume.UndeletableUntil(pv); in {
			t.Errorf("of %q: got %s", other, got)
		}
	}
}
