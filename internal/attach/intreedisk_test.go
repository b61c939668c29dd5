package attach_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const googleDriver = "pd.csi.storage.gke.io"

// inTreeDisk is a PersistentVolume with source gcePersistentDisk.
func inTreeDisk(changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	return fixture.Volume("data", append([]func(*corev1.PersistentVolume){func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "legacy"}}
	}}, changes...)...)
}

func inZone(label, zone string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{label: zone} }
}

func within(label, zone string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
}

func machineOf(providerID string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

func TestTranslateInTreeDisk(t *testing.T) {
	const machine = "gce://demo/europe-west3-a/n1"
	inA, inB := map[string]string{corev1.LabelTopologyZone: "europe-west3-a"}, map[string]string{corev1.LabelTopologyZone: "europe-west3-b"}
	for _, test := range []struct {
		name      string
		pv        *corev1.PersistentVolume
		node      *corev1.Node
		wantError string
	}{
		{"that of the node's zone, without labels", inTreeDisk(), machineOf(machine, nil), ""},
		{"that of its label", inTreeDisk(inZone(corev1.LabelTopologyZone, "europe-west3-a")), machineOf(machine, inA), ""},
		{"that of its old label", inTreeDisk(inZone("failure-domain.beta.kubernetes.io/zone", "europe-west3-a")), machineOf(machine, nil), ""},
		{"that of its affinity", inTreeDisk(within(corev1.LabelTopologyZone, "europe-west3-a")), machineOf(machine, inA), ""},
		{"one of another zone, by its label", inTreeDisk(inZone(corev1.LabelTopologyZone, "europe-west3-b")), machineOf(machine, inA), "is in zone europe-west3-b"},
		{"one of another zone, by its old label", inTreeDisk(inZone("failure-domain.beta.kubernetes.io/zone", "europe-west3-b")), machineOf(machine, nil), "is in zone europe-west3-b"},
		{"one of another zone, by its affinity", inTreeDisk(within(corev1.LabelTopologyZone, "europe-west3-b")), machineOf(machine, inA), "nodeAffinity"},
		{"one of a zone that only the node's label names", inTreeDisk(within(corev1.LabelTopologyZone, "europe-west3-b")), machineOf(machine, inB), "correct the label"},
		{"one of several zones", inTreeDisk(inZone(corev1.LabelTopologyZone, "europe-west3-a__europe-west3-b")), machineOf(machine, nil), "in several zones"},
		{"none, on a node without a machine", inTreeDisk(), machineOf("", nil), "no machine at Google"},
		{"none, on another cloud's node", inTreeDisk(), machineOf("aws:///eu/i-1", nil), "no machine at Google"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.pv.DeepCopy()
			got, err := attach.TranslateInTreeDisk(test.pv, test.node)
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantError) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got.Spec.CSI.Driver != stowagev1alpha1.GCEDriver || got.Spec.CSI.VolumeHandle != "projects/demo/zones/europe-west3-a/disks/legacy" {
				t.Fatalf("got %+v, %v", got, err)
			}
			if got.Name != before.Name || !volume.IsDiskPath(got.Spec.CSI.VolumeHandle) || !attach.IsInTreeDisk(test.pv) || test.pv.Spec.GCEPersistentDisk.PDName != "legacy" {
				t.Errorf("got %+v of %+v", got, test.pv)
			}
		})
	}
}

func TestAnInTreeDiskKeepsTheSettingsOfItsPersistentVolume(t *testing.T) {
	pv := inTreeDisk(func(pv *corev1.PersistentVolume) {
		pv.Spec.GCEPersistentDisk.FSType, pv.Spec.GCEPersistentDisk.Partition, pv.Spec.GCEPersistentDisk.ReadOnly = "xfs", 2, true
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	})
	got, err := attach.TranslateInTreeDisk(pv, machineOf("gce://demo/europe-west3-a/n1", nil))
	if err != nil {
		t.Fatal(err)
	}
	source := got.Spec.CSI
	if source.FSType != "xfs" || !source.ReadOnly || source.VolumeAttributes["partition"] != "2" {
		t.Errorf("got %+v", source)
	}
	if len(got.Spec.AccessModes) != 1 || got.Spec.AccessModes[0] != corev1.ReadWriteOnce {
		t.Errorf("a disk that one node can write is for %v", got.Spec.AccessModes)
	}
}

func TestAttachesInTreeDisks(t *testing.T) {
	follows := map[string]string{stowagev1alpha1.FollowsPodsAnnotation: "true"}
	with := func(annotations map[string]string, names ...string) *storagev1.CSINode {
		drivers := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		for _, name := range names {
			drivers.Spec.Drivers = append(drivers.Spec.Drivers, storagev1.CSINodeDriver{Name: name})
		}
		return drivers
	}
	kubelet := &corev1.Node{}
	kubelet.Status.NodeInfo.KubeletVersion = "v1.37.1"
	for _, test := range []struct {
		name    string
		node    *corev1.Node
		drivers *storagev1.CSINode
		want    bool
	}{
		{"one whose agent follows pods", &corev1.Node{}, with(follows, stowagev1alpha1.GCEDriver), true},
		{"one with a kubelet", kubelet, with(follows, stowagev1alpha1.GCEDriver), false},
		{"one with a kubelet and Stowage's CSI driver", kubelet, with(nil, stowagev1alpha1.GCEDriver), false},
		{"one of an agent before this version", &corev1.Node{}, with(nil, stowagev1alpha1.GCEDriver), false},
		{"one that says no", &corev1.Node{}, with(map[string]string{stowagev1alpha1.FollowsPodsAnnotation: "false"}, stowagev1alpha1.GCEDriver), false},
		{"one with Google's driver, too", &corev1.Node{}, with(follows, stowagev1alpha1.GCEDriver, googleDriver), false},
		{"one without Stowage's driver", &corev1.Node{}, with(follows, "other.example.com"), false},
		{"one without a CSINode", &corev1.Node{}, nil, false},
		{"one that is gone", nil, with(follows, stowagev1alpha1.GCEDriver), false},
	} {
		if got := attach.AttachesInTreeDisks(test.node, test.drivers); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Each driver waits until the other has released what may be the same disk.
func TestADiskChangesDriversOnANodeOnlyOnceItIsReleased(t *testing.T) {
	pv := inTreeDisk()
	ours, _, err := attach.OfInTreeDisk(pv, machineOf("gce://demo/europe-west3-a/"+here, nil))
	if err != nil {
		t.Fatal(err)
	}
	googles, _, err := attach.OfPersistentVolume(pv)
	if err != nil {
		t.Fatal(err)
	}
	other := googles
	other.Name, other.Handle = volume.UniqueName(googleDriver, "projects/demo/zones/europe-west3-b/disks/legacy"), "projects/demo/zones/europe-west3-b/disks/legacy"
	other.Source = storagev1.VolumeAttachmentSource{PersistentVolumeName: new("another")}
	for _, test := range []struct {
		name      string
		desired   attach.Volume
		has       []attach.Volume
		node      *corev1.Node
		isCreated bool
	}{
		{"ours, while the node has Google's", ours, []attach.Volume{googles}, managed(), false},
		{"Google's, while the node has ours", googles, []attach.Volume{ours}, managed(), false},
		{"ours, while the node uses Google's", ours, nil, managed(using(googles)), false},
		{"ours, while Google's is in volumesAttached", ours, nil, managed(marked(googles.Name)), false},
		{"Google's, while the node uses ours", googles, nil, managed(using(ours)), false},
		{"ours, while the node has a disk of that name of another zone", ours, []attach.Volume{other}, managed(), true},
		{"ours", ours, nil, managed(), true},
		{"Google's", googles, nil, managed(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := attach.View{Name: here, Node: test.node, Desired: []attach.Volume{test.desired}}
			for _, volume := range test.has {
				view.Attachments = append(view.Attachments, attach.Attachment{Object: attachmentOn(here, volume), Volume: volume})
			}
			created := false
			for _, step := range attach.Plan(view) {
				created = created || step.Action == attach.Create
				if step.Volume.Name == test.desired.Name && !test.isCreated && (step.Action != attach.Wait || step.Cause != attach.Detaching) {
					t.Errorf("the step is %+v", step)
				}
			}
			if created != test.isCreated {
				t.Errorf("created: %v", created)
			}
		})
	}
}
