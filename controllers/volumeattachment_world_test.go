package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// cloud is a StorageBackend with volumes that are attached.
func cloud(options ...func(*stowagev1alpha1.StorageBackend)) *stowagev1alpha1.StorageBackend {
	object := LocalBackend("cloud", options...)
	object.Spec.Local, object.Spec.GCE = nil, &stowagev1alpha1.GCEBackend{Project: "project", Zones: []string{"zone"}}
	return object
}

// forcing sets a backend's policy of force.
func forcing(after string) func(*stowagev1alpha1.StorageBackend) {
	return func(object *stowagev1alpha1.StorageBackend) { object.Spec.Attachment.ForceDetachAfter = after }
}

// machine is a Ready node with a machine in a cloud.
func machine(name string) *corev1.Node {
	node := Node(name)
	node.Spec.ProviderID = "gce://project/zone/" + name
	node.Status.Conditions[0].LastTransitionTime = metav1.Now()
	return node
}

func identityOf(node *corev1.Node) backend.NodeIdentity {
	return backend.NodeIdentity{Name: node.Name, ProviderID: node.Spec.ProviderID}
}

// clouded is a cluster with a node, and a claim with a volume that can be attached.
func clouded(scope reconciler.Scope, options ...func(*stowagev1alpha1.StorageBackend)) (*world, *corev1.PersistentVolume, *corev1.Node) {
	GinkgoHelper()
	return cloudedIn(newWorld(scope), options...)
}

func cloudedIn(w *world, options ...func(*stowagev1alpha1.StorageBackend)) (*world, *corev1.PersistentVolume, *corev1.Node) {
	GinkgoHelper()
	node := machine("node-1")
	claim := Claim(InClass("cloud"))
	if w.scope == reconciler.ClassesScope {
		requestedFrom(stowagev1alpha1.GCEDriver)(claim)
	}
	w.create(cloud(options...), node, claim)
	w.settle()
	pv := Volume(provisioned.VolumeID(claim))
	w.get(pv)
	if w.scope == reconciler.ClassesScope {
		setPhase(w, pv, corev1.VolumeBound)
	}
	w.newEvents()
	return w, pv, node
}

// attachmentTo is the attachment that a controller of nodes creates.
func attachmentTo(node string, pv *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: pv.Spec.CSI.Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
	}
}

// attached is a cluster with a volume that is attached to a node.
func attached(options ...func(*stowagev1alpha1.StorageBackend)) (*world, *storagev1.VolumeAttachment, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, pv, node := clouded(reconciler.ClusterScope, options...)
	attachment := attachmentTo(node.Name, pv)
	w.create(attachment)
	w.settle()
	expectAttached(w, attachment, pv, node)
	return w, attachment, pv
}

// firstNode is the node that the volume of attached is attached to.
func firstNode(w *world) *corev1.Node {
	GinkgoHelper()
	node := Node("node-1")
	w.get(node)
	return node
}

func expectAttached(w *world, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, node *corev1.Node) {
	GinkgoHelper()
	w.get(attachment)
	Expect(attachment.Status.Attached).To(BeTrue())
	Expect(attachment.Status.AttachError).To(BeNil())
	Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(Equal([]string{node.Spec.ProviderID}))
}

// expectStays expects a deleted attachment to be there with an error, and its volume to be
// attached.
func expectStays(w *world, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, why string) {
	GinkgoHelper()
	w.get(attachment)
	Expect(attachment.Status.DetachError).NotTo(BeNil())
	Expect(attachment.Status.DetachError.Message).To(ContainSubstring(why))
	Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
}

func expectDetached(w *world, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	Expect(w.gone(attachment)).To(BeTrue())
	Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
}

// updateNode changes a node's spec and status, as kubelets and people do.
func updateNode(w *world, node *corev1.Node, change func(*corev1.Node)) {
	GinkgoHelper()
	update(w, node, change)
	change(node)
	Expect(w.direct.Status().Update(GinkgoT().Context(), node)).To(Succeed())
}

// using makes a node report that it uses a volume.
func using(pv *corev1.PersistentVolume) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.VolumesInUse = []corev1.UniqueVolumeName{volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
	}
}

// markedAttached puts a volume into volumesAttached of a node.
func markedAttached(pv *corev1.PersistentVolume) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}}
	}
}

// silentFor makes a node silent for some time.
func silentFor(w *world, time time.Duration) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.Conditions[0].Status = corev1.ConditionUnknown
		node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.clock.Now().Add(-time))
	}
}

func outOfService(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
}

// all of several changes.
func together(changes ...func(*corev1.Node)) func(*corev1.Node) {
	return func(node *corev1.Node) {
		for _, change := range changes {
			change(node)
		}
	}
}

// twinOf is another PersistentVolume that refers to the same storage.
func twinOf(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	twin := Volume("twin")
	twin.Spec.PersistentVolumeSource = *pv.Spec.PersistentVolumeSource.DeepCopy()
	return twin
}
