// Package v1alpha1 is Stowage's API: the StorageBackend that an administrator
// writes, the NodeVolume by which the manager asks one node's agent to make or
// remove a volume, the NodeRecycling by which it asks to have one emptied, and the
// NodeDisk by which that agent says what room it has.
//
// It holds types, markers and names; it has no logic, and it imports nothing
// but apimachinery and k8s.io/api, so that any client can use it.
//
// +kubebuilder:object:generate=true
// +groupName=stowage.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "stowage.dev", Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&StorageBackend{}, &StorageBackendList{},
		&NodeVolume{}, &NodeVolumeList{},
		&NodeDisk{}, &NodeDiskList{},
		&NodeRecycling{}, &NodeRecyclingList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
