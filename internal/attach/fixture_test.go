package attach_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const here = "node-1"

// disk is a volume of a driver, for one node at a time.
func disk(name string) attach.Volume {
	volume, _, err := attach.OfPersistentVolume(diskObject(name))
	if err != nil {
		panic(err)
	}
	return volume
}

func diskObject(name string) *corev1.PersistentVolume {
	return fixture.Volume(name, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "disks.example.com", VolumeHandle: "handle-of-" + name},
		}
	})
}

// managed is a Ready node with volumes that a controller attaches.
func managed(options ...func(*corev1.Node)) *corev1.Node {
	node := fixture.Node(here)
	node.Annotations = map[string]string{attach.ManagedAnnotation: "true"}
	node.CreationTimestamp = metav1.NewTime(ago(time.Hour))
	for _, option := range options {
		option(node)
	}
	return node
}

func using(volumes ...attach.Volume) func(*corev1.Node) {
	return func(node *corev1.Node) {
		for _, volume := range volumes {
			node.Status.VolumesInUse = append(node.Status.VolumesInUse, volume.Name)
		}
	}
}

func marked(names ...corev1.UniqueVolumeName) func(*corev1.Node) {
	return func(node *corev1.Node) {
		for _, name := range names {
			node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
		}
	}
}

func notReady(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }

func outOfService(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
}

// attachment is one of a volume, attached.
func attachment(volume attach.Volume, options ...func(*storagev1.VolumeAttachment)) attach.Attachment {
	return attach.Attachment{Object: attachmentOn(here, volume, options...), Volume: volume}
}

func attachmentOn(node string, volume attach.Volume, options ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(node), CreationTimestamp: metav1.NewTime(ago(time.Minute))},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Attacher: volume.Driver, Source: volume.Source},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}
	for _, option := range options {
		option(object)
	}
	return object
}

func notAttached(object *storagev1.VolumeAttachment) { object.Status.Attached = false }

func deleting(object *storagev1.VolumeAttachment) {
	object.DeletionTimestamp = &metav1.Time{Time: ago(time.Second)}
}

func createdAt(when time.Time) func(*storagev1.VolumeAttachment) {
	return func(object *storagev1.VolumeAttachment) { object.CreationTimestamp = metav1.NewTime(when) }
}
