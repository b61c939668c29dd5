package attach

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/stowage-dev/stowage/internal/volume"
)

// translator knows which CSI driver serves which in-tree volume type. Every supported kubelet
// has migrated all of them.
var translator = csitranslation.New()

// OfPersistentVolume returns the volume of a PersistentVolume on nodes. False means that its
// type is never attached, whatever its driver requires; see Required for that.
func OfPersistentVolume(pv *corev1.PersistentVolume) (Volume, bool, error) {
	source := pv.Spec.PersistentVolumeSource
	found := Volume{SingleNode: !volume.AllowsMultiAttach(pv.Spec.AccessModes)}
	switch {
	case source.CSI != nil:
		found = ofCSI(pv, source.CSI)
	case source.ISCSI != nil:
		found.Name = iscsiName(source.ISCSI.TargetPortal, source.ISCSI.IQN, source.ISCSI.Lun)
	case source.FC != nil:
		found.Name = fcName(source.FC)
	case source.FlexVolume != nil:
		found.Name = flexName(source.FlexVolume.Driver, pv.Name)
	case translator.IsPVMigratable(pv):
		translated, err := translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
		if err != nil {
			return Volume{}, false, fmt.Errorf("finding the CSI driver of volume %s: %w", pv.Name, err)
		}
		found = ofCSI(translated, translated.Spec.CSI)
	}
	if found.Name == "" {
		return Volume{}, false, nil
	}
	found.Source = storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}
	return found, true, nil
}

// OfInline returns the volume of a pod's inline volume on nodes. An inline CSI volume is never
// attached.
func OfInline(inline *corev1.Volume, namespace string) (Volume, bool, error) {
	switch {
	case inline.ISCSI != nil:
		return named(iscsiName(inline.ISCSI.TargetPortal, inline.ISCSI.IQN, inline.ISCSI.Lun))
	case inline.FC != nil:
		return named(fcName(inline.FC))
	case inline.FlexVolume != nil:
		return named(flexName(inline.FlexVolume.Driver, inline.Name))
	case !translator.IsInlineMigratable(inline):
		return Volume{}, false, nil
	}
	translated, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Logger{}, inline, namespace)
	if err != nil {
		return Volume{}, false, fmt.Errorf("finding the CSI driver of volume %s: %w", inline.Name, err)
	}
	volume := ofCSI(translated, translated.Spec.CSI)
	volume.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &translated.Spec}
	return volume, true, nil
}

// IsInline reports cheaply whether OfInline may return a volume.
func IsInline(inline *corev1.Volume) bool {
	return inline.ISCSI != nil || inline.FC != nil || inline.FlexVolume != nil || translator.IsInlineMigratable(inline)
}

func ofCSI(pv *corev1.PersistentVolume, source *corev1.CSIPersistentVolumeSource) Volume {
	return Volume{
		Name:       volume.UniqueName(source.Driver, source.VolumeHandle),
		Driver:     source.Driver,
		Handle:     source.VolumeHandle,
		SingleNode: !volume.AllowsMultiAttach(pv.Spec.AccessModes),
	}
}

// named is a volume that many nodes may have, because nothing forbids it.
func named(name corev1.UniqueVolumeName) (Volume, bool, error) {
	return Volume{Name: name}, name != "", nil
}

func iscsiName(portal, iqn string, lun int32) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(fmt.Sprintf("%s%s:%s:%d", iscsiPrefix, portal, iqn, lun))
}

// fcName is empty if the source names no device.
func fcName(source *corev1.FCVolumeSource) corev1.UniqueVolumeName {
	switch {
	case len(source.TargetWWNs) > 0 && source.Lun != nil:
		return corev1.UniqueVolumeName(fmt.Sprintf("%s%v:%d", fcPrefix, source.TargetWWNs, *source.Lun))
	case len(source.WWIDs) > 0:
		return corev1.UniqueVolumeName(fmt.Sprintf("%s%v", fcPrefix, source.WWIDs))
	default:
		return ""
	}
}

// flexName has the driver in place of the plug-in: to the kubelet each driver is a plug-in.
func flexName(driver, name string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(driver + "/" + name)
}
