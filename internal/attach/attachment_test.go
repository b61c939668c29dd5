package attach_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/attach"
)

func TestOfAttachment(t *testing.T) {
	a := disk("a")
	inline, _, err := attach.OfInline(&corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "p"},
	}}, "default")
	if err != nil {
		t.Fatal(err)
	}
	other := inline
	other.Driver = "disks.example.com"
	other.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: other.Driver, VolumeHandle: other.Handle},
	}}}
	renamed := func(name string) func(*storagev1.VolumeAttachment) {
		return func(object *storagev1.VolumeAttachment) { object.Name = name }
	}
	recreated := diskObject("a")
	recreated.Spec.CSI.VolumeHandle = "another"

	for _, test := range []struct {
		name    string
		object  *storagev1.VolumeAttachment
		pv      *corev1.PersistentVolume
		node    *corev1.Node
		volume  corev1.UniqueVolumeName
		foreign bool
	}{
		{"that of a PersistentVolume", attachmentOn(here, a), diskObject("a"), nil, a.Name, false},
		{"that of one that is gone, which the node uses", attachmentOn(here, a), nil, managed(using(a)), a.Name, false},
		{"that of one that is gone, which is in volumesAttached", attachmentOn(here, a), nil, managed(marked("else", a.Name)), a.Name, false},
		{"that of one that is gone, which the node's status does not list", attachmentOn(here, a), nil, managed(using(disk("b"))), "", false},
		{"that of one that is gone, as the node is", attachmentOn(here, a), nil, nil, "", false},
		{"that of one that was recreated", attachmentOn(here, a), recreated, managed(using(a)), a.Name, false},
		{"one of another name", attachmentOn(here, a, renamed("by-hand")), diskObject("a"), nil, "", true},
		{"one of nearly the right name", attachmentOn(here, a, renamed("csi-abcd")), diskObject("a"), nil, "", true},
		{"one of nothing", attachmentOn(here, attach.Volume{Driver: "d"}), nil, nil, "", true},
		{"that of what a pod names", attachmentOn(here, inline), nil, nil, inline.Name, false},
		{"that of what no pod can name", attachmentOn(here, other), nil, nil, other.Name, true},
		{"that of what a pod names, under another name", attachmentOn(here, inline, renamed("by-hand")), nil, nil, inline.Name, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := attach.OfAttachment(test.object, test.pv, test.node)
			if got.Foreign != test.foreign || !test.foreign && got.Volume.Name != test.volume {
				t.Errorf("it is of %q, foreign: %v", got.Volume.Name, got.Foreign)
			}
			if !test.foreign && got.Volume.Driver != test.object.Spec.Attacher {
				t.Errorf("its driver is %q", got.Volume.Driver)
			}
		})
	}
}

func TestIsUnused(t *testing.T) {
	a := disk("a")
	for _, node := range []*corev1.Node{managed(using(a)), managed(marked(a.Name))} {
		if attach.IsUnused(node, a.Name) {
			t.Errorf("the volume counts as unused: %+v", node.Status)
		}
	}
	if !attach.IsUnused(managed(using(disk("b"))), a.Name) {
		t.Error("a volume that the node does not have counts as used")
	}
}
