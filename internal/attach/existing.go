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

// An existing disk is one of Google's that somebody made beforehand, and that a volume
// object of source gcePersistentDisk names. Behind a kubelet it belongs to Google's CSI
// driver; to a node whose agent follows pods Stowage attaches it, under the name of its
// own driver and the disk's full path.

// googleDriver is Google's CSI driver, and unspecified what it says of a disk's project
// or zone that the volume object doesn't tell.
const (
	googleDriver = plugins.GCEPDDriverName
	unspecified  = plugins.UnspecifiedValue
)

// zoneLabels are those that tell where a disk or a node is, and zoneSeparator stands
// between the zones of a disk that is in several.
var zoneLabels = []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone}

const zoneSeparator = "__"

// IsExisting tells whether a volume object is of an existing disk.
func IsExisting(pv *corev1.PersistentVolume) bool {
	return pv != nil && pv.Spec.GCEPersistentDisk != nil
}

// AttachesExisting tells whether Stowage attaches existing disks to a node: its agent
// follows pods, it has no kubelet, and Google's driver isn't there. One executor serves
// a node; on all others nothing changes.
func AttachesExisting(node *corev1.Node, drivers *storagev1.CSINode) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(drivers.Spec.Drivers, func(driver storagev1.CSINodeDriver) bool { return driver.Name == name })
	}
	return node != nil && drivers != nil && node.Status.NodeInfo.KubeletVersion == "" &&
		drivers.Annotations[stowagev1alpha1.FollowsPodsAnnotation] == "true" &&
		has(stowagev1alpha1.GCEDriver) && !has(googleDriver)
}

// TranslateExisting makes of a volume object of an existing disk what Stowage's driver
// knows it by on a node. A disk is attached within its project and zone: it is where the
// node's machine is, or the node can't have it. What the volume object says of its zone
// has to agree: another disk there may have the same name.
func TranslateExisting(pv *corev1.PersistentVolume, node *corev1.Node) (*corev1.PersistentVolume, error) {
	project, zone, err := placeOf(node)
	if err != nil {
		return nil, err
	}
	if err := checkZone(pv, node, zone); err != nil {
		return nil, err
	}
	translated, err := translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
	if err != nil {
		return nil, fmt.Errorf("finding out what disk volume %s is: %w", pv.Name, err)
	}
	// Topology is said in the words of Google's driver there, which this node doesn't have.
	translated.Spec.NodeAffinity = pv.Spec.NodeAffinity.DeepCopy()
	translated.Spec.CSI.Driver = stowagev1alpha1.GCEDriver
	translated.Spec.CSI.VolumeHandle = volume.DiskPath(project, zone, pv.Spec.GCEPersistentDisk.PDName)
	return translated, nil
}

// placeOf is the project and the zone of a node's machine.
func placeOf(node *corev1.Node) (project, zone string, err error) {
	rest, is := strings.CutPrefix(node.Spec.ProviderID, "gce://")
	parts := strings.Split(rest, "/")
	if !is || len(parts) != 3 || slices.Contains(parts, "") {
		return "", "", fmt.Errorf("node %s has no machine at Google: its spec.providerID is %q, not gce://PROJECT/ZONE/NAME", node.Name, node.Spec.ProviderID)
	}
	return parts[0], parts[1], nil
}

func checkZone(pv *corev1.PersistentVolume, node *corev1.Node, zone string) error {
	for _, label := range zoneLabels {
		said, ofNode := pv.Labels[label], node.Labels[label]
		switch {
		case strings.Contains(said, zoneSeparator):
			return fmt.Errorf("the disk of volume %s is in several zones (%s), and such disks are attached by Google's CSI driver only", pv.Name, said)
		case said != "" && said != zone:
			return fmt.Errorf("the disk of volume %s is in zone %s, and node %s in zone %s", pv.Name, said, node.Name, zone)
		case ofNode != "" && ofNode != zone:
			return fmt.Errorf("node %s has the label %s=%s, and its machine is in zone %s: correct the label", node.Name, label, ofNode, zone)
		}
	}
	if err := storagehelpers.CheckNodeAffinity(pv, node.Labels); err != nil {
		return fmt.Errorf("volume %s can't be used on node %s: the node's labels don't match the volume's nodeAffinity", pv.Name, node.Name)
	}
	return nil
}

// OfExisting tells what a volume object of an existing disk is to a node that Stowage
// attaches it to.
func OfExisting(pv *corev1.PersistentVolume, node *corev1.Node) (Volume, bool, error) {
	translated, err := TranslateExisting(pv, node)
	if err != nil {
		return Volume{}, false, err
	}
	volume := ofCSI(translated, translated.Spec.CSI)
	volume.Source = storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}
	return volume, true, nil
}

// mayBeSameDisk tells whether a volume may be the same disk as one that is known by
// another driver's name: to Stowage by its full path, to Google's driver by as much of
// it as the volume object tells.
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

// UsesSameDisk tells whether an attachment is one of Google's driver for what may be the
// same existing disk as a volume. That of another volume object is known by its name,
// which is made of what Google's driver may know the disk by.
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
