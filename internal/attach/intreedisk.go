package attach

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// An in-tree disk is a disk of Google's cloud that Stowage did not make, and that a
// PersistentVolume with a gcePersistentDisk source names. On a node with a kubelet, Google's
// CSI driver attaches it. On a node without one, if the agent follows pods, Stowage attaches
// it, under the name of its own driver and the disk's full path.

// googleDriver is Google's CSI driver. unspecified is its placeholder for a project or zone
// that the PersistentVolume does not name.
const (
	googleDriver = plugins.GCEPDDriverName
	unspecified  = plugins.UnspecifiedValue
)

// zoneLabels are the zone labels of volumes and nodes. zoneSeparator separates the zones of a
// regional disk.
var zoneLabels = []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone}

const zoneSeparator = "__"

// IsInTreeDisk reports whether a PersistentVolume is of an in-tree disk.
func IsInTreeDisk(pv *corev1.PersistentVolume) bool {
	return pv != nil && pv.Spec.GCEPersistentDisk != nil
}

// AttachesInTreeDisks reports whether Stowage attaches in-tree disks to a node: its agent
// follows pods, it has no kubelet, and Google's driver is not there. One driver serves a node;
// on all others nothing changes.
func AttachesInTreeDisks(node *corev1.Node, drivers *storagev1.CSINode) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(drivers.Spec.Drivers, func(driver storagev1.CSINodeDriver) bool { return driver.Name == name })
	}
	return node != nil && drivers != nil && node.Status.NodeInfo.KubeletVersion == "" &&
		drivers.Annotations[stowagev1alpha1.FollowsPodsAnnotation] == "true" &&
		has(stowagev1alpha1.GCEDriver) && !has(googleDriver)
}

// TranslateInTreeDisk returns the PersistentVolume of an in-tree disk with the source of
// Stowage's driver. A disk can only be attached within its project and zone, so those of the
// node's machine apply. The zone of the PersistentVolume has to agree: another disk in the
// node's zone may have the same name.
func TranslateInTreeDisk(pv *corev1.PersistentVolume, node *corev1.Node) (*corev1.PersistentVolume, error) {
	project, zone, err := projectAndZoneOf(node)
	if err != nil {
		return nil, err
	}
	if err := checkZone(pv, node, zone); err != nil {
		return nil, err
	}
	translated, err := translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
	if err != nil {
		return nil, fmt.Errorf("finding the disk of volume %s is: %w", pv.Name, err)
	}
	// The translation uses topology keys of Google's driver, which this node does not have.
	translated.Spec.NodeAffinity = pv.Spec.NodeAffinity.DeepCopy()
	translated.Spec.CSI.Driver = stowagev1alpha1.GCEDriver
	translated.Spec.CSI.VolumeHandle = volume.DiskPath(project, zone, pv.Spec.GCEPersistentDisk.PDName)
	return translated, nil
}

func projectAndZoneOf(node *corev1.Node) (project, zone string, err error) {
	rest, is := strings.CutPrefix(node.Spec.ProviderID, "gce://")
	parts := strings.Split(rest, "/")
	if !is || len(parts) != 3 || slices.Contains(parts, "") {
		return "", "", fmt.Errorf("node %s has no machine at Google: its spec.providerID is %q, not gce://PROJECT/ZONE/NAME", node.Name, node.Spec.ProviderID)
	}
	return parts[0], parts[1], nil
}

func checkZone(pv *corev1.PersistentVolume, node *corev1.Node, zone string) error {
	for _, label := range zoneLabels {
		ofVolume, ofNode := pv.Labels[label], node.Labels[label]
		switch {
		case strings.Contains(ofVolume, zoneSeparator):
			return fmt.Errorf("the disk of volume %s is in several zones (%s), and such disks are attached by Google's CSI driver only", pv.Name, ofVolume)
		case ofVolume != "" && ofVolume != zone:
			return fmt.Errorf("the disk of volume %s is in zone %s, and node %s in zone %s", pv.Name, ofVolume, node.Name, zone)
		case ofNode != "" && ofNode != zone:
			return fmt.Errorf("node %s has the label %s=%s, and its machine is in zone %s: correct the label", node.Name, label, ofNode, zone)
		}
	}
	if err := storagehelpers.CheckNodeAffinity(pv, node.Labels); err != nil {
		return fmt.Errorf("volume %s can't be used on node %s: the node's labels don't match the volume's nodeAffinity", pv.Name, node.Name)
	}
	return nil
}

// OfInTreeDisk returns the volume of an in-tree disk on a node that Stowage attaches it to.
func OfInTreeDisk(pv *corev1.PersistentVolume, node *corev1.Node) (Volume, bool, error) {
	translated, err := TranslateInTreeDisk(pv, node)
	if err != nil {
		return Volume{}, false, err
	}
	volume := ofCSI(translated, translated.Spec.CSI)
	volume.Source = storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}
	return volume, true, nil
}

// mayBeSameDisk reports whether a volume may be the same disk as one with another driver's
// name. Stowage knows a disk by its full path, Google's driver by the parts that the
// PersistentVolume names.
func mayBeSameDisk(volume Volume, driver, handle string) bool {
	own, other := strings.Split(volume.Handle, "/"), strings.Split(handle, "/")
	drivers := []string{volume.Driver, driver}
	if !slices.Contains(drivers, stowagev1alpha1.GCEDriver) || !slices.Contains(drivers, googleDriver) || len(own) != 6 || len(other) != 6 {
		return false
	}
	for i := range own {
		if own[i] != other[i] && own[i] != unspecified && other[i] != unspecified {
			return false
		}
	}
	return true
}

// UsesSameDisk reports whether an attachment of Google's driver may be of the same in-tree
// disk as a volume. An attachment of another PersistentVolume is recognised by its name, a
// hash of one of the handles that Google's driver may use for the disk.
func UsesSameDisk(object *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) bool {
	if object.Spec.Attacher != googleDriver {
		return false
	}
	source := object.Spec.Source
	if source.PersistentVolumeName != nil && *source.PersistentVolumeName == pv.Name {
		return true
	}
	own := Volume{Driver: stowagev1alpha1.GCEDriver, Handle: pv.Spec.CSI.VolumeHandle}
	if inline := source.InlineVolumeSpec; inline != nil && inline.CSI != nil && mayBeSameDisk(own, inline.CSI.Driver, inline.CSI.VolumeHandle) {
		return true
	}
	parts := strings.Split(own.Handle, "/")
	if len(parts) != 6 {
		return false
	}
	for _, project := range []string{parts[1], unspecified} {
		for _, zone := range []string{parts[3], unspecified} {
			if object.Name == volume.AttachmentName(googleDriver, volume.DiskPath(project, zone, parts[5]), object.Spec.NodeName) {
				return true
			}
		}
	}
	return false
}
