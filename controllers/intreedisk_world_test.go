package controllers

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	// legacyPath is a disk that Stowage did not make, by its path.
	legacyPath = "projects/project/zones/zone/disks/legacy"
	// googleHandle is the handle that Google's driver uses for it, from the PersistentVolume.
	googleHandle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/legacy"
)

// inTreeWorld is a cluster with a backend that allows in-tree disks to be attached, and
// a claim bound to one.
type inTreeWorld struct {
	*nodeWorld
	pv   *corev1.PersistentVolume
	node *corev1.Node
}

func newInTreeWorld(options ...func(*corev1.PersistentVolume)) *inTreeWorld {
	GinkgoHelper()
	w := &inTreeWorld{nodeWorld: newNodeWorld()}
	DeferCleanup(w.emptyDrivers)
	w.storage.AddExisting(legacyPath)
	w.create(otherCloud("cloud"))
	w.node = w.followed("node-1")
	w.pv = w.inTreeVolume("data", options...)
	return w
}

func allowingInTreeDisks(object *stowagev1alpha1.StorageBackend) {
	object.Spec.GCE.ExistingDisks = true
}

// otherCloud is a backend that allows it.
func otherCloud(name string) *stowagev1alpha1.StorageBackend {
	object := cloud()
	object.Name = name
	allowingInTreeDisks(object)
	return object
}

// inTreeVolume is a volume object of the disk, bound to a claim of its name.
func (w *inTreeWorld) inTreeVolume(name string, options ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := Volume(name, append([]func(*corev1.PersistentVolume){func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "legacy"}}
	}, ReservedTo(name)}, options...)...)
	w.create(pv, Claim(ClaimNamed(name), AskingFor(name), AskingModes(pv.Spec.AccessModes...)))
	w.world.settle()
	w.get(pv)
	return pv
}

// followed is a node with an agent that follows pods.
func (w *inTreeWorld) followed(name string) *corev1.Node {
	GinkgoHelper()
	node := managedNode(name)
	w.create(node, driversOf(name, true, stowagev1alpha1.GCEDriver))
	return node
}

// kubelet is a node with a kubelet, Stowage's CSI driver and Google's driver.
func (w *inTreeWorld) kubelet(name string) *corev1.Node {
	GinkgoHelper()
	node := managedNode(name)
	node.Status.NodeInfo.KubeletVersion = "v1.37.1"
	w.create(node, driversOf(name, false, stowagev1alpha1.GCEDriver, attachintent.GoogleDriver))
	return node
}

func driversOf(name string, follows bool, drivers ...string) *storagev1.CSINode {
	object := &storagev1.CSINode{}
	object.Name = name
	if follows {
		object.Annotations = map[string]string{stowagev1alpha1.FollowsPodsAnnotation: "true"}
	}
	for _, driver := range drivers {
		object.Spec.Drivers = append(object.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name})
	}
	return object
}

func (w *inTreeWorld) emptyDrivers() {
	for _, object := range w.all(&storagev1.CSINodeList{}) {
		_ = w.direct.Delete(context.Background(), object)
	}
}

// interruptedAt settles with a manager that is killed at a write, and another that continues.
func (w *inTreeWorld) interruptedAt(number int, kind fault) {
	GinkgoHelper()
	w.faults = map[int]fault{w.written + number: kind}
	_ = w.round()
	w.restart()
	w.settle()
	w.faults = nil
	w.settle()
}

// ours and googles are the disk's attachments to a node.
func ours(node string, pv *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	return attachmentBy(stowagev1alpha1.GCEDriver, legacyPath, node, pv)
}

func googles(node string, pv *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	return attachmentBy(attachintent.GoogleDriver, googleHandle, node, pv)
}

func attachmentBy(driver, handle, node string, pv *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	known := pv.DeepCopy()
	known.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
	return attachmentTo(node, known)
}

// running starts a pod that has the disk, and has its node use it.
func (w *inTreeWorld) runs(name string) *corev1.Pod {
	GinkgoHelper()
	pod := Pod(name, w.node.Name, w.pv.Name)
	w.create(pod)
	w.settle()
	Expect(w.volumesAttached(w.node)).To(ConsistOf("kubernetes.io/csi/gce.stowage.dev^" + legacyPath))
	w.uses(w.node, "kubernetes.io/csi/gce.stowage.dev^"+legacyPath)
	return pod
}

func (w *inTreeWorld) expectOn(machines ...string) {
	GinkgoHelper()
	Expect(w.storage.ExistingOn(legacyPath)).To(ConsistOf(machines))
}

// untouched expects no calls for the disk but to attach and to detach it.
func (w *inTreeWorld) expectUntouched() {
	GinkgoHelper()
	Expect(w.storage.ExistingOn(legacyPath)).NotTo(BeNil())
	for _, call := range w.storage.Calls() {
		if strings.Contains(call, "legacy") {
			Expect(call).To(Or(HavePrefix("Attach existing "+legacyPath), HavePrefix("Detach existing "+legacyPath)))
		}
	}
}

func attachErrorOf(w *inTreeWorld, attachment *storagev1.VolumeAttachment) string {
	GinkgoHelper()
	w.get(attachment)
	Expect(attachment.Status.Attached).To(BeFalse())
	Expect(attachment.Status.AttachError).NotTo(BeNil())
	return attachment.Status.AttachError.Message
}

// afterPatch does something once, right after an attachment was written.
type afterPatch struct {
	client.Client
	do func()
}

func (c afterPatch) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := c.Client.Patch(ctx, object, patch, options...)
	if _, is := object.(*storagev1.VolumeAttachment); is && err == nil {
		c.do()
	}
	return err
}

// asWritten is the content of attachments and of volumesAttached, without what the
// API server adds.
func (w *inTreeWorld) asWritten() []string {
	GinkgoHelper()
	var written []string
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		attachment := object.(*storagev1.VolumeAttachment)
		text, err := json.Marshal([]any{attachment.Name, attachment.Finalizers, attachment.Annotations, attachment.Spec, attachment.Status})
		Expect(err).NotTo(HaveOccurred())
		written = append(written, string(text))
	}
	for _, object := range w.all(&corev1.NodeList{}) {
		node := object.(*corev1.Node)
		text, err := json.Marshal([]any{node.Name, node.Annotations, node.Status.VolumesAttached, node.Status.VolumesInUse})
		Expect(err).NotTo(HaveOccurred())
		written = append(written, string(text))
	}
	return written
}
