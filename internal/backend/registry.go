package backend

import (
	"fmt"
	"slices"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Kind is one kind of storage: it makes the Backends of its StorageBackend objects.
type Kind interface {
	// Type is the member of the union in StorageBackend's spec.
	Type() stowagev1alpha1.BackendType
	// Open makes the backend that a StorageBackend object describes. It calls no storage. An error
	// of kind Invalid names what in the spec can't be served.
	Open(object *stowagev1alpha1.StorageBackend) (Backend, error)
}

// Forgetter is a kind that keeps something for each StorageBackend object.
type Forgetter interface {
	// Forget drops what is kept for the object of this name, which is gone.
	Forget(name string)
}

// Registry holds the kinds of storage that a program serves. It is built once,
// in cmd/, and doesn't change.
type Registry struct {
	kinds []Kind
}

// NewRegistry makes a registry of these kinds.
func NewRegistry(kinds ...Kind) *Registry {
	return &Registry{kinds: kinds}
}

// Open makes the backend that a StorageBackend object describes. An error of
// kind Invalid says that the object can't be served.
func (r *Registry) Open(object *stowagev1alpha1.StorageBackend) (Backend, error) {
	for _, kind := range r.kinds {
		if kind.Type() == TypeOf(object) {
			opened, err := kind.Open(object)
			if err != nil {
				return nil, fmt.Errorf("opening backend %s: %w", object.Name, err)
			}
			return opened, nil
		}
	}
	return nil, Invalid.Errorf("backends of type %s are not served by this version of Stowage", TypeOf(object))
}

// Forget drops what kinds keep for a StorageBackend object that is gone.
func (r *Registry) Forget(name string) {
	for _, kind := range r.kinds {
		if keeps, does := kind.(Forgetter); does {
			keeps.Forget(name)
		}
	}
}

// IsOurs reports whether a driver is one of Stowage's, served by this program or not.
func IsOurs(driver string) bool {
	return slices.Contains([]string{stowagev1alpha1.NFSDriver, stowagev1alpha1.LocalDriver, stowagev1alpha1.GCEDriver}, driver)
}

// NeedsAttach reports whether the volumes of one of Stowage's drivers are devices, which a node has
// only while they are attached to it. Its CSIDriver object says the same.
func NeedsAttach(driver string) bool { return driver == stowagev1alpha1.GCEDriver }

// HasAttributes reports whether volumes of a StorageBackend can have a VolumeAttributesClass.
func HasAttributes(object *stowagev1alpha1.StorageBackend) bool {
	return object.Spec.CSI != nil || object.Spec.GCE != nil
}

// TypeOf is the kind of storage that a StorageBackend object asks for.
func TypeOf(object *stowagev1alpha1.StorageBackend) stowagev1alpha1.BackendType {
	switch {
	case object.Spec.NFS != nil:
		return stowagev1alpha1.NFSType
	case object.Spec.Local != nil:
		return stowagev1alpha1.LocalType
	case object.Spec.CSI != nil:
		return stowagev1alpha1.CSIType
	default:
		return stowagev1alpha1.GCEType
	}
}

// DriverOf is the CSI driver name of a StorageBackend object's volumes.
func DriverOf(object *stowagev1alpha1.StorageBackend) string {
	if object.Spec.CSI != nil {
		return object.Spec.CSI.Driver
	}
	return map[stowagev1alpha1.BackendType]string{
		stowagev1alpha1.NFSType:   stowagev1alpha1.NFSDriver,
		stowagev1alpha1.LocalType: stowagev1alpha1.LocalDriver,
		stowagev1alpha1.GCEType:   stowagev1alpha1.GCEDriver,
	}[TypeOf(object)]
}
