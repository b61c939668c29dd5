// Package v1alpha1 is Stowage's API. An administrator writes StorageBackends. The
// manager orders volumes from one node's agent with NodeVolumes, and the emptying of
// a directory with NodeRecyclings. The agent reports the room of its disks in
// NodeDisks.
//
// It has types, markers and names, and no logic. It imports only apimachinery and
// k8s.io/api, so that any client can use it.
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
