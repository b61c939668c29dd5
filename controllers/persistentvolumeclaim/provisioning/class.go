package provisioning

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/csiclass"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/ownclass"
	"github.com/stowage-dev/stowage/internal/backend"
)

// backendNameOf returns the name of the StorageBackend that a class names: by a parameter or, for
// a driver that isn't one of Stowage's, by its provisioner.
func backendNameOf(class *storagev1.StorageClass) (string, error) {
	if !backend.IsOurs(class.Provisioner) {
		return class.Provisioner, nil
	}
	return backend.NameIn(class.Parameters)
}

// needsClass reports whether a call can be repeated only with the parameters of the claim's class.
func needsClass(class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend) bool {
	return object.Spec.CSI != nil || ownclass.Needs(class, object)
}

// fillFromClass adds to a request what its class asks for.
func (r *Provisioner) fillFromClass(request *backend.Request, class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend) error {
	var err error
	if object.Spec.CSI == nil {
		err = ownclass.Fill(request, class, object)
	} else {
		err = csiclass.Fill(request, class, object, r.namespace)
	}
	if request.VolumeMode == corev1.PersistentVolumeBlock {
		request.FSType = ""
	}
	if err != nil {
		return fmt.Errorf("StorageClass %s: %w", class.Name, err)
	}
	return nil
}
