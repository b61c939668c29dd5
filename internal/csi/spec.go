package csi

import (
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Keys that a kubelet adds to a volume's context: of the pod, and whether the pod names
// the volume itself.
const (
	kubeletPrefix = "csi.storage.k8s.io/"
	podNameKey    = kubeletPrefix + "pod.name"
	podSpaceKey   = kubeletPrefix + "pod.namespace"
	podUIDKey     = kubeletPrefix + "pod.uid"
	ephemeralKey  = kubeletPrefix + "ephemeral"
)

// use is what requests that stage or publish a volume have in common.
type use interface {
	GetVolumeId() string
	GetVolumeCapability() *csispec.VolumeCapability
	GetVolumeContext() map[string]string
	GetPublishContext() map[string]string
}

// specOf is a volume as a request describes it. The capability was checked.
func specOf(driver string, request use) (volumes.Spec, error) {
	capability, id := request.GetVolumeCapability(), request.GetVolumeId()
	attachment := volumes.AttachmentOf(request.GetPublishContext())
	if attachment == nil && len(request.GetPublishContext()) > 0 {
		return volumes.Spec{}, status.Error(codes.InvalidArgument,
			"publish_context must have device and serial: was the volume attached by a Stowage manager of this version?")
	}
	mode := corev1.PersistentVolumeFilesystem
	if capability.GetBlock() != nil {
		mode = corev1.PersistentVolumeBlock
	}
	source := &corev1.CSIPersistentVolumeSource{
		Driver: driver, VolumeHandle: id, FSType: capability.GetMount().GetFsType(), VolumeAttributes: attributes(request.GetVolumeContext()),
	}
	return volumes.Spec{
		PersistentVolume: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: id},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: accessModes(capability), VolumeMode: &mode, MountOptions: capability.GetMount().GetMountFlags(),
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: source},
			},
		},
		Access:     accessOf(capability, false),
		Attachment: attachment,
	}, nil
}

// inlineOf is a volume that a pod names itself, as a request describes it.
func inlineOf(driver string, request *csispec.NodePublishVolumeRequest) (volumes.Spec, error) {
	said := request.GetVolumeContext()
	pod := metav1.ObjectMeta{Name: said[podNameKey], Namespace: said[podSpaceKey], UID: types.UID(said[podUIDKey])}
	for key, value := range map[string]string{podNameKey: pod.Name, podSpaceKey: pod.Namespace, podUIDKey: string(pod.UID)} {
		if value == "" {
			return volumes.Spec{}, status.Errorf(codes.InvalidArgument,
				"volume_context has no %s: a pod's own volume needs podInfoOnMount in the CSIDriver object %s", key, driver)
		}
	}
	if request.GetVolumeCapability().GetMount() == nil {
		return volumes.Spec{}, status.Error(codes.InvalidArgument, "a pod's own volume can't be a block device")
	}
	readOnly := request.GetReadonly()
	source := &corev1.CSIVolumeSource{Driver: driver, ReadOnly: &readOnly, VolumeAttributes: attributes(said)}
	if fsType := request.GetVolumeCapability().GetMount().GetFsType(); fsType != "" {
		source.FSType = &fsType
	}
	return volumes.Spec{
		Pod:    &corev1.Pod{ObjectMeta: pod},
		Volume: corev1.Volume{Name: request.GetVolumeId(), VolumeSource: corev1.VolumeSource{CSI: source}},
		Access: accessOf(request.GetVolumeCapability(), readOnly),
	}, nil
}

// attributes are the volume's own, without what a kubelet added for one pod.
func attributes(volumeContext map[string]string) map[string]string {
	own := map[string]string{}
	for key, value := range volumeContext {
		if !strings.HasPrefix(key, kubeletPrefix) {
			own[key] = value
		}
	}
	return own
}

// accessModes are those of Kubernetes that a capability stands for; nil if there are
// none. Kubelets sent SINGLE_NODE_WRITER for ReadWriteOnce before they could distinguish
// it from ReadWriteOncePod.
func accessModes(capability *csispec.VolumeCapability) []corev1.PersistentVolumeAccessMode {
	switch capability.GetAccessMode().GetMode() {
	case csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	case csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER:
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	case csispec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY, csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	case csispec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER, csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	default:
		return nil
	}
}

// accessOf is what may be done with a volume. A volume for readers is never written, not
// even while its file system is prepared for pods: other nodes read it.
func accessOf(capability *csispec.VolumeCapability, readOnly bool) mount.Access {
	if readOnly || volume.OnlyReaders(accessModes(capability)) {
		return mount.ReadOnly
	}
	return mount.ReadWrite
}
