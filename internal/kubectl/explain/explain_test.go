package explain_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/explain"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// world is a pod with a bound local volume on node-1, all of it well.
type world struct {
	pod        *corev1.Pod
	claim      *corev1.PersistentVolumeClaim
	class      *storagev1.StorageClass
	pv         *corev1.PersistentVolume
	backend    *stowagev1alpha1.StorageBackend
	node       *corev1.Node
	csiNode    *storagev1.CSINode
	csiDriver  *storagev1.CSIDriver
	nodeVolume *stowagev1alpha1.NodeVolume
	nodeDisk   *stowagev1alpha1.NodeDisk
	more       []client.Object
}

func isTrue(names ...string) (conditions []metav1.Condition) {
	for _, name := range names {
		conditions = append(conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Ready"})
	}
	return conditions
}

func isFalse(name, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
}

func well() *world {
	const driver = stowagev1alpha1.LocalDriver
	w := &world{
		pod:     Pod("db", "node-1", "data"),
		claim:   Claim(ClaimUID("uid"), InClass("fast"), AskingFor("pvc-uid")),
		class:   Class("fast", driver, map[string]string{"backend": "fast"}),
		pv:      Volume("pvc-uid", OfClass("fast"), ReservedTo("data"), OnNode("node-1")),
		backend: LocalBackend("fast"),
		node:    Node("node-1"),
		csiNode: &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
			Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "node-1"}}},
		},
		csiDriver: &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}},
		nodeVolume: &stowagev1alpha1.NodeVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"},
			Spec:       stowagev1alpha1.NodeVolumeSpec{NodeName: "node-1", Backend: "fast"},
			Status:     stowagev1alpha1.NodeVolumeStatus{Conditions: isTrue("Provisioned", "Ready", "Granted", "Healthy")},
		},
		nodeDisk: &stowagev1alpha1.NodeDisk{
			ObjectMeta: metav1.ObjectMeta{Name: "fast-node-1"},
			Spec:       stowagev1alpha1.NodeDiskSpec{NodeName: "node-1", Backend: "fast", Path: "/var/lib/stowage/fast"},
			Status:     stowagev1alpha1.NodeDiskStatus{Conditions: isTrue("Ready", "HasRoom")},
		},
	}
	w.pod.Status.Phase = corev1.PodRunning
	w.claim.Status.Phase, w.pv.Status.Phase = corev1.ClaimBound, corev1.VolumeBound
	w.pv.Spec.ClaimRef.UID = "uid"
	w.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: driver, VolumeHandle: "pvc-uid", VolumeAttributes: map[string]string{"backend": "fast", "path": "/var/lib/stowage/fast/pvc-uid"},
	}}
	w.backend.Status = stowagev1alpha1.StorageBackendStatus{Type: stowagev1alpha1.LocalType, Conditions: isTrue("Ready")}
	return w
}

// ofDriver makes the volume one of a CSI driver with a StorageBackend.
func (w *world) ofDriver(driver string) {
	w.class.Provisioner, w.class.Parameters = driver, nil
	w.pv.Spec.CSI.Driver, w.pv.Spec.CSI.VolumeAttributes = driver, nil
	w.csiDriver.Name, w.csiNode.Spec.Drivers[0].Name = driver, driver
	w.nodeVolume, w.nodeDisk = nil, nil
	w.backend.Name, w.backend.Spec.Local = driver, nil
	w.backend.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: driver}
}

// pending takes from a world what there isn't before a claim is bound.
func (w *world) pending() {
	w.pod.Status.Phase, w.pod.Spec.NodeName = corev1.PodPending, ""
	w.claim.Status.Phase, w.claim.Spec.VolumeName = corev1.ClaimPending, ""
	w.pv, w.nodeVolume = nil, nil
}

func (w *world) objects() []client.Object {
	objects := append([]client.Object{w.pod, w.csiDriver}, w.more...)
	add(&objects, w.claim)
	add(&objects, w.class)
	add(&objects, w.pv)
	add(&objects, w.backend)
	add(&objects, w.node)
	add(&objects, w.csiNode)
	add(&objects, w.nodeVolume)
	add(&objects, w.nodeDisk)
	return objects
}

func add[T any, P interface {
	*T
	client.Object
}](objects *[]client.Object, object P) {
	if object != nil {
		*objects = append(*objects, object)
	}
}

func event(uid, reason, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: reason},
		InvolvedObject: corev1.ObjectReference{UID: "uid"}, Reason: reason, Message: message,
		Type: corev1.EventTypeWarning, LastTimestamp: metav1.NewTime(kubectltest.Now), Source: corev1.EventSource{Component: uid},
	}
}

func TestExplainNamesTheFirstProblem(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		want   string
	}{
		"nothing is wrong":           {func(*world) {}, "No problem found."},
		"the claim is missing":       {func(w *world) { w.claim, w.pv = nil, nil }, "First problem: PersistentVolumeClaim default/data (volume data): doesn't exist"},
		"the volume object is gone":  {func(w *world) { w.pv = nil }, "First problem: PersistentVolume pvc-uid: doesn't exist"},
		"the backend isn't Ready":    {func(w *world) { w.backend.Status.Conditions = isFalse("Ready", "Unavailable", "no answer") }, "First problem: StorageBackend fast: isn't Ready: Unavailable: no answer"},
		"the backend is gone":        {func(w *world) { w.backend = nil }, "First problem: StorageBackend fast: doesn't exist"},
		"the node is gone":           {func(w *world) { w.node = nil }, "First problem: Node node-1: doesn't exist"},
		"the node isn't Ready":       {func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionUnknown }, "First problem: Node node-1: isn't Ready"},
		"the driver isn't on it":     {func(w *world) { w.csiNode.Spec.Drivers = nil }, "driver local.stowage.dev isn't registered"},
		"the pod is on another node": {func(w *world) { w.pod.Spec.NodeName = "node-2"; w.more = append(w.more, Node("node-2")) }, "First problem: Node node-2: isn't node node-1, where the volume's data is"},
		"the claim waits for its pod": {func(w *world) {
			w.pending()
			w.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "not enough free storage"}}
			w.more = append(w.more, event("uid", "WaitForPodScheduled", "waiting for pod db"))
		}, "First problem: Pod default/db: has no node: Unschedulable: not enough free storage\nWhat to do:    compare what its claims request"},
		"the scheduler waits for the volume": {func(w *world) {
			w.pending()
			w.claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "node-1"}
			w.more = append(w.more, event("uid", "Provisioning", "making the volume"))
		}, "First problem: PersistentVolumeClaim default/data (volume data): is Pending: Provisioning: making the volume"},
		"the scheduler chose a node": {func(w *world) {
			w.pending()
			w.claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "node-1"}
		}, "waits for the scheduler, which chose node node-1 for its claim data"},
		"the volume is there, and the pod not yet on its node": {func(w *world) {
			w.pod.Status.Phase, w.pod.Spec.NodeName = corev1.PodPending, ""
			w.claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "node-1"}
		}, "First problem: Pod default/db: has no node, and no scheduler reported why\nWhat to do:    if that lasts, check that kube-scheduler runs"},
		"no scheduler chose a node": {func(w *world) {
			w.pod.Status.Phase, w.pod.Spec.NodeName = corev1.PodPending, ""
		}, "First problem: Pod default/db: has no node, and no scheduler reported why\nWhat to do:    if that lasts, check that kube-scheduler runs"},
		"the claim is impossible before there is a pod": {func(w *world) {
			w.pending()
			w.class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
			w.more = append(w.more, event("uid", "ProvisioningFailed", "no such access mode"))
		}, "First problem: PersistentVolumeClaim default/data (volume data): is Pending: ProvisioningFailed: no such access mode\n"},
		"the volume is sick": {func(w *world) {
			w.nodeVolume.Status.Conditions = append(isTrue("Provisioned", "Ready"), isFalse("Healthy", "IOError", "read error")...)
		}, "isn't Healthy: IOError: read error"},
		"the NodeVolume is gone":              {func(w *world) { w.nodeVolume = nil }, "First problem: NodeVolume pvc-uid: doesn't exist"},
		"a volume made by hand is on no node": {func(w *world) { w.nodeVolume, w.pv.Spec.NodeAffinity = nil, nil }, "of a node that the volume object doesn't name in its nodeAffinity"},
		"the volume can't grow": {func(w *world) {
			w.nodeVolume.Status.Conditions = append(isTrue("Provisioned", "Ready"), isFalse("Granted", "Exhausted", "no room on the disk")...)
		}, "isn't Granted: Exhausted: no room on the disk\nWhat to do:    make room, or lower the claim's request to any size above what it has"},
		"the disk is missing": {func(w *world) { w.nodeDisk.Status.Conditions = isFalse("Ready", "DiskMissing", "mount it") }, "First problem: NodeDisk fast-node-1: isn't Ready: DiskMissing: mount it"},
		"the audit found it lost": {func(w *world) {
			w.backend.Status.Audit = &stowagev1alpha1.AuditStatus{LostVolumes: []string{"pvc-uid"}}
		}, "the last audit found no storage for it"},
		"the volume object promises too much": {func(w *world) {
			w.more = append(w.more, event("uid", "VolumeUnusable", "volumeMode Block is not supported here"))
		}, "First problem: PersistentVolume pvc-uid: VolumeUnusable: volumeMode Block is not supported here\nWhat to do:    change spec.accessModes"},
		"another claim of the name": {func(w *world) { w.claim.UID = "new"; w.claim.Status.Phase = corev1.ClaimLost }, "is Lost: volume pvc-uid is gone or belongs to another claim"},
		"the claim grows": {func(w *world) {
			w.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "FileSystemResizePending", Status: "True"}}
		}, "Bound to pvc-uid, 0; FileSystemResizePending"},
		"bindable says why": {func(w *world) {
			w.pending()
			w.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: stowagev1alpha1.BindableCondition, Status: "False", Reason: "Exhausted", Message: "no node has 1Gi"}}
		}, "is Pending: Exhausted: no node has 1Gi"},
		"an event says why": {func(w *world) {
			w.pending()
			w.more = append(w.more, event("uid", "ProvisioningFailed", "quota"))
		}, "is Pending: ProvisioningFailed: quota"},
		"the class is missing":      {func(w *world) { w.pending(); w.class = nil }, "First problem: StorageClass fast: doesn't exist"},
		"there is no default class": {func(w *world) { w.pending(); w.claim.Spec.StorageClassName = nil }, "there is no default class"},
		"a pending claim's backend": {func(w *world) { w.pending(); w.backend = nil }, "First problem: StorageBackend fast: doesn't exist\nWhat to do:    create the StorageBackend, or a claim with another class"},
		"the volume is being made and fails": {func(w *world) {
			nodeVolume := w.nodeVolume
			w.pending()
			w.nodeVolume = nodeVolume
			w.nodeVolume.Status.Conditions = isFalse("Provisioned", "Exhausted", "3Gi are left")
		}, "First problem: NodeVolume pvc-uid: isn't Provisioned: Exhausted: 3Gi are left"},
		"the mount fails": {func(w *world) {
			w.pod.Status.Phase, w.pod.UID = corev1.PodPending, "uid"
			w.more = append(w.more, event("uid", "FailedMount", "permission denied"))
		}, "First problem: Pod default/db: starts on node node-1: FailedMount: permission denied"},
		"a CSI driver's backend isn't Ready": {func(w *world) {
			w.ofDriver("disk.example.com")
			w.backend.Status.Conditions = isFalse("Ready", "Unavailable", "no socket")
		}, "First problem: StorageBackend disk.example.com: isn't Ready: Unavailable: no socket"},
		"a CSI driver's backend counts for a pending claim": {func(w *world) {
			w.ofDriver("disk.example.com")
			w.pending()
			w.backend.Status.Conditions = isFalse("Ready", "Unavailable", "no socket")
		}, "StorageBackend disk.example.com: isn't Ready: Unavailable: no socket"},
		"another program's driver has no backend": {func(w *world) { w.ofDriver("disk.example.com"); w.backend = nil }, "No problem found."},
		"escape sequences stay text":              {func(w *world) { w.backend.Status.Conditions = isFalse("Ready", "Unavailable", "\x1b[2Jgone") }, `Unavailable: \u001b[2Jgone`},
	} {
		t.Run(name, func(t *testing.T) {
			w := well()
			test.change(w)
			got, err := kubectltest.Run(t.Context(), explain.New, "pod db", kubectltest.Client(w.objects()...))
			if err != nil || !strings.Contains(got.Out, test.want) {
				t.Errorf("want %q, got %v\n%s", test.want, err, got.Out)
			}
		})
	}
}

func TestExplainJudgesAttachments(t *testing.T) {
	for name, test := range map[string]struct {
		attachment storagev1.VolumeAttachment
		want       string
	}{
		"attached":       {storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1"}, Status: storagev1.VolumeAttachmentStatus{Attached: true}}, "No problem found."},
		"being attached": {storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1"}}, "is being attached to node node-1"},
		"fails":          {storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1"}, Status: storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "limit"}}}, "attaching to node node-1 fails: limit"},
		"elsewhere":      {storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-2"}, Status: storagev1.VolumeAttachmentStatus{Attached: true}}, "the volume is still attached to node node-2"},
		"of another":     {storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("other")}}}, "the volume isn't attached to node node-1 yet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := well()
			w.pv.Spec.NodeAffinity, w.nodeVolume, w.nodeDisk = nil, nil, nil
			w.pv.Spec.CSI.Driver, w.csiDriver.Name, w.csiDriver.Spec.AttachRequired = "disk.example.com", "disk.example.com", nil
			w.csiNode.Spec.Drivers[0].Name = "disk.example.com"
			a := test.attachment
			a.Name = volume.AttachmentName("disk.example.com", "pvc-uid", a.Spec.NodeName)
			if a.Spec.Source.PersistentVolumeName == nil {
				a.Spec.Source.PersistentVolumeName = ptr.To("pvc-uid")
			}
			w.more = append(w.more, &a)
			got, err := kubectltest.Run(t.Context(), explain.New, "pod db", kubectltest.Client(w.objects()...))
			if err != nil || !strings.Contains(got.Out, test.want) {
				t.Errorf("want %q, got %v\n%s", test.want, err, got.Out)
			}
		})
	}
}

func TestExplainSaysHowLongAReleasedVolumeIsKept(t *testing.T) {
	w := well()
	w.claim, w.pod.Spec.Volumes = nil, nil
	w.pv.Status.Phase, w.pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
	w.pv.Status.Reason = "UndeletableUntil2030-01-05T12:00:00Z"
	got, err := kubectltest.Run(t.Context(), explain.New, "pv pvc-uid", kubectltest.Client(w.objects()...))
	if err != nil || !strings.Contains(got.Out, "its data is kept until 2030-01-05T12:00:00Z") || !strings.Contains(got.Out, "kubectl stowage undelete pvc-uid") {
		t.Errorf("%v\n%s", err, got.Out)
	}
}

func TestExplainPrintsJSON(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), explain.New, "pvc data -o json", kubectltest.Client(well().objects()...))
	report := explain.Report{}
	if err != nil || json.Unmarshal([]byte(got.Out), &report) != nil || len(report.Links) < 6 || report.Problem != nil {
		t.Errorf("%v\n%s", err, got.Out)
	}
}

func TestExplainRefusesWhatItDoesNotKnow(t *testing.T) {
	for arguments, want := range map[string]string{
		"node n":         "explain knows pod, pvc and pv",
		"pvc other":      `there is no PersistentVolumeClaim "other" in namespace "default": choose another namespace with -n`,
		"pv other":       "kubectl stowage list has the names",
		"pvc data -o go": "-o is wide, json, yaml",
	} {
		if _, err := kubectltest.Run(t.Context(), explain.New, arguments, kubectltest.Client(well().objects()...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", arguments, want, err)
		}
	}
}
