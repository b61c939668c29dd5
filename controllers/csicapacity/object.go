package csicapacity

import (
	"crypto/sha256"
	"encoding/hex"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// DriverLabel has the driver of an object, as external-provisioner's have it.
	DriverLabel = "csi.storage.k8s.io/drivername"
	// ManagedByLabel has the program that keeps the object.
	ManagedByLabel = "csi.storage.k8s.io/managed-by"
	// manager is this package in ManagedByLabel.
	manager = "stowage"
	// namePrefix is that of external-provisioner, too.
	namePrefix = "csisc-"
	// nameHash is the number of hexadecimal digits that stand for driver, class and topology.
	nameHash = 32
)

// ofDriver selects the objects of a driver that are Stowage's.
func ofDriver(driver string) client.MatchingLabels {
	return client.MatchingLabels{DriverLabel: driver, ManagedByLabel: manager}
}

// ownDriver returns the driver of an object that is Stowage's; "" for all others.
func ownDriver(object client.Object) string {
	if object.GetLabels()[ManagedByLabel] != manager {
		return ""
	}
	return object.GetLabels()[DriverLabel]
}

// nameOf returns the name of the object for a class and a topology: always the same, so that none is
// created twice.
func nameOf(driver, class string, topology map[string]string) string {
	sum := sha256.Sum256([]byte(driver + "/" + class + "/" + labels.Set(topology).String()))
	return namePrefix + hex.EncodeToString(sum[:])[:nameHash]
}

// objectFor returns the object for a class and a topology. The Refresher adds the room: to the scheduler,
// an object without it is as good as none.
func objectFor(namespace string, of *stowagev1alpha1.StorageBackend, class string, topology map[string]string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: nameOf(of.Name, class, topology), Labels: ofDriver(of.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, stowagev1alpha1.GroupVersion.WithKind("StorageBackend"))},
		},
		StorageClassName: class,
		NodeTopology:     &metav1.LabelSelector{MatchLabels: topology},
	}
}

// serves reports whether new volumes are made with a StorageBackend of kind csi.
func serves(object *stowagev1alpha1.StorageBackend) bool {
	return object != nil && object.Spec.CSI != nil && object.DeletionTimestamp.IsZero()
}
