package resolve

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/csi-translation-lib/plugins"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// useOurs is the alternative to other storage.
	useOurs = "use a claim of a StorageClass of Stowage's"
	// useKubelet is for storage of drivers that need a kubelet.
	useKubelet = "run the pod on a node with one, or " + useOurs
	// removedUpstream is for types that Kubernetes has removed.
	removedUpstream = "no node of this version of Kubernetes mounts it: " + useOurs
)

// insteadOf is the alternatives to unsupported types, by their names in the API.
var insteadOf = map[string]string{
	"awsElasticBlockStore": ofDriver(plugins.AWSEBSDriverName),
	"azureDisk":            ofDriver(plugins.AzureDiskDriverName),
	"azureFile":            ofDriver(plugins.AzureFileDriverName),
	"cinder":               ofDriver(plugins.CinderDriverName),
	"portworxVolume":       ofDriver(plugins.PortworxDriverName),
	"vsphereVolume":        ofDriver(plugins.VSphereDriverName),

	"fc":         "the kubelet mounts it: " + useKubelet,
	"flexVolume": "the kubelet mounts it: " + useKubelet,
	"iscsi":      "the kubelet mounts it: " + useKubelet,

	"cephfs":               removedUpstream,
	"flocker":              removedUpstream,
	"glusterfs":            removedUpstream,
	"photonPersistentDisk": removedUpstream,
	"quobyte":              removedUpstream,
	"rbd":                  removedUpstream,
	"scaleIO":              removedUpstream,
	"storageos":            removedUpstream,

	"gitRepo": "use an emptyDir, and an init container that clones the repository into it",
	"image":   "the container runtime mounts it: use an emptyDir, and an init container of that image that copies its files into it",
}

// InsteadOf returns the unsupported volume types by their names in the API, each with its
// alternative. docs/volumes.md lists them.
func InsteadOf() map[string]string { return maps.Clone(insteadOf) }

// The alternatives to an in-tree disk.
const (
	// existingByPod is for one in a pod's spec: any user with the right to create pods could get
	// any disk of a project.
	existingByPod = "make a PersistentVolume of the disk, and name its claim: disks that pods name themselves are never attached here"
	// existingByClaim is for one in a PersistentVolume.
	existingByClaim = "its disk is attached and mounted by CSI driver " + plugins.GCEPDDriverName + ", which needs a kubelet: " +
		"set gce.existingDisks on the StorageBackend of the disk's project and zone to have Stowage do it, or run the pod on a node with a kubelet"
)

// ofDriver is the alternative to a type that was migrated to a CSI driver.
func ofDriver(driver string) string {
	return "CSI driver " + driver + " needs a kubelet: " + useKubelet
}

// ErrUnserved is the error of an unsupported volume type, with its alternative.
func ErrUnserved(spec volumes.Spec) error {
	err := fmt.Errorf("volume of type %s is %w", typeOf(spec), volumes.ErrNotSupported)
	if instead := insteadOfVolume(spec); instead != "" {
		err = fmt.Errorf("%w: %s", err, instead)
	}
	return err
}

func insteadOfVolume(spec volumes.Spec) string {
	switch instead, driver := insteadOf[sourceName(spec)], driverOf(spec); {
	case instead != "":
		return instead
	case spec.PersistentVolume != nil && spec.PersistentVolume.Spec.GCEPersistentDisk != nil:
		return existingByClaim
	case spec.PersistentVolume == nil && spec.Volume.GCEPersistentDisk != nil:
		return existingByPod
	case isOfStowage(driver) && spec.PersistentVolume == nil:
		return "use a generic ephemeral volume (ephemeral.volumeClaimTemplate) with a StorageClass of that driver: it lives as long as the pod, too"
	case spec.IsBlock():
		return "use volumeMode Filesystem, or a volume that is a disk: of a gce backend, or of a local one with layout Image"
	default:
		return ""
	}
}

func isOfStowage(driver string) bool {
	return slices.Contains([]string{stowagev1alpha1.NFSDriver, stowagev1alpha1.LocalDriver, stowagev1alpha1.GCEDriver}, driver)
}

// MayBeAllowed is a refusal that ends once an administrator allows what is refused.
type MayBeAllowed struct{ Err error }

// Error implements error.
func (m MayBeAllowed) Error() string { return m.Err.Error() }

// Unwrap implements errors.Unwrap.
func (m MayBeAllowed) Unwrap() error { return m.Err }
