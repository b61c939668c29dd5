package attach_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// The names were seen in the status of nodes, and on attachments, of Kubernetes 1.37.
func TestOfPersistentVolume(t *testing.T) {
	fc := func(source corev1.FCVolumeSource) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{FC: &source}
	}
	for _, test := range []struct {
		of           string
		source       corev1.PersistentVolumeSource
		name, driver string
	}{
		{"csi", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h^1"}}, "kubernetes.io/csi/d^h^1", "d"},
		{"gce", corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "p"}}, "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/p", "pd.csi.storage.gke.io"},
		{"ebs", corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}, "kubernetes.io/csi/ebs.csi.aws.com^vol-1", "ebs.csi.aws.com"},
		{"iscsi", corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.x", Lun: 3}}, "kubernetes.io/iscsi/10.0.0.1:3260:iqn.x:3", ""},
		{"fc", fc(corev1.FCVolumeSource{TargetWWNs: []string{"50", "51"}, Lun: ptr.To[int32](2)}), "kubernetes.io/fc/[50 51]:2", ""},
		{"fc by id", fc(corev1.FCVolumeSource{WWIDs: []string{"36", "37"}}), "kubernetes.io/fc/[36 37]", ""},
		{"fc of nothing", fc(corev1.FCVolumeSource{}), "", ""},
		{"flex", corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "example.com/lvm"}}, "example.com/lvm/v", ""},
		{"nfs", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}, "", ""},
	} {
		t.Run(test.of, func(t *testing.T) {
			pv := fixture.Volume("v", func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeSource = test.source })
			volume, attachable, err := attach.OfPersistentVolume(pv)
			if err != nil || string(volume.Name) != test.name || volume.Driver != test.driver || attachable != (test.name != "") {
				t.Fatalf("it is %+v (%v, %v)", volume, attachable, err)
			}
			if attachable && (*volume.Source.PersistentVolumeName != "v" || !volume.SingleNode || volume.String() != "v") {
				t.Errorf("it is attached as %+v", volume)
			}
			if pv.Spec.PersistentVolumeSource != test.source {
				t.Error("the volume object was changed")
			}
		})
	}
}

func TestOfInline(t *testing.T) {
	for _, test := range []struct {
		of           string
		source       corev1.VolumeSource
		name, driver string
		single       bool
	}{
		{"gce", corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "p"}}, "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/p", "pd.csi.storage.gke.io", true},
		{"gce, read by many", corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "p", ReadOnly: true}}, "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/p", "pd.csi.storage.gke.io", false},
		{"iscsi", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i", Lun: 1}}, "kubernetes.io/iscsi/p:i:1", "", false},
		{"fc", corev1.VolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"36"}}}, "kubernetes.io/fc/[36]", "", false},
		{"flex", corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/lvm"}}, "example.com/lvm/data", "", false},
		{"csi", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}, "", "", false},
		{"emptyDir", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, "", "", false},
	} {
		t.Run(test.of, func(t *testing.T) {
			inline := &corev1.Volume{Name: "data", VolumeSource: test.source}
			volume, attachable, err := attach.OfInline(inline, "default")
			if err != nil || string(volume.Name) != test.name || volume.Driver != test.driver || volume.SingleNode != test.single || attachable != (test.name != "") {
				t.Fatalf("it is %+v (%v, %v)", volume, attachable, err)
			}
			if volume.NeedsAttachment() && volume.Source.InlineVolumeSpec.CSI.VolumeHandle != volume.Handle {
				t.Errorf("it is attached as %+v", volume.Source)
			}
			if attach.IsInline(inline) != attachable {
				t.Errorf("whether it is looked at at all: %v", !attachable)
			}
		})
	}
}

func TestVolumesWithoutADriver(t *testing.T) {
	// A regional disk whose zones have no region in common.
	pv := fixture.Volume("v", func(pv *corev1.PersistentVolume) {
		pv.Labels = map[string]string{corev1.LabelTopologyZone: "us-east1-a__europe-west1-b"}
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "p"}}
	})
	if _, attachable, err := attach.OfPersistentVolume(pv); err == nil || attachable {
		t.Errorf("it is attachable: %v, %v", attachable, err)
	}
}

func TestAccessModesDecideSingleNode(t *testing.T) {
	const once, many, readers, pod = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod
	type modes = []corev1.PersistentVolumeAccessMode
	for _, test := range []struct {
		modes  modes
		single bool
	}{{nil, false}, {modes{once}, true}, {modes{pod}, true}, {modes{many}, false}, {modes{once, readers}, false}, {modes{readers}, false}} {
		pv := diskObject("a")
		pv.Spec.AccessModes = test.modes
		if volume, _, _ := attach.OfPersistentVolume(pv); volume.SingleNode != test.single {
			t.Errorf("%v is for one node: %v", test.modes, volume.SingleNode)
		}
	}
}

func TestRequired(t *testing.T) {
	driver := func(required *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: required}}
	}
	for _, driver := range []*storagev1.CSIDriver{nil, driver(nil), driver(ptr.To(true))} {
		if !attach.Required(driver) {
			t.Errorf("%v has to be attached", driver)
		}
	}
	if attach.Required(driver(ptr.To(false))) {
		t.Error("a driver with attachRequired=false needs no attach")
	}
}
