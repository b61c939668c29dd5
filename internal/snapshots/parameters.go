package snapshots

import (
	"maps"
	"slices"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/storageclass"
)

// maxParameters and maxParameterBytes bound what a class makes a driver's call carry.
const maxParameters, maxParameterBytes = 256, 32 << 10

// Class is a VolumeSnapshotClass or a VolumeGroupSnapshotClass.
type Class struct {
	Kind, Name string
	Parameters map[string]string
}

// DriverParameters leaves out a class's parameters for csi-snapshotter. Those that name a Secret must name the
// one that the StorageBackend names, in the manager's namespace: a class must not choose which Secrets the manager reads.
func DriverParameters(class Class, object *stowagev1alpha1.StorageBackend, namespace string) (map[string]string, error) {
	kept, size := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		value := class.Parameters[key]
		size += len(key) + len(value)
		if call, is := strings.CutPrefix(key, storageclass.SidecarPrefix); !is {
			kept[key] = value
		} else if !isKnownSecret(call, value, object, namespace) {
			return nil, backend.Invalid.Errorf("%s %s has the parameter %.200q, which is not supported: %s; use a class without the parameter",
				class.Kind, class.Name, key, secretsOf(object))
		}
	}
	if len(class.Parameters) > maxParameters || size > maxParameterBytes {
		return nil, backend.Invalid.Errorf("%s %s has %d parameters of %d bytes: use a class with at most %d parameters and %d bytes",
			class.Kind, class.Name, len(class.Parameters), size, maxParameters, maxParameterBytes)
	}
	return kept, nil
}

// secretsOf says which Secret calls have.
func secretsOf(object *stowagev1alpha1.StorageBackend) string {
	if object.Spec.CSI == nil {
		return "calls have the credentials of StorageBackend " + object.Name
	}
	return "calls have the Secret in spec.csi.secrets.provision of StorageBackend " + object.Name
}

func isKnownSecret(call, value string, object *stowagev1alpha1.StorageBackend, namespace string) bool {
	if object.Spec.CSI == nil {
		return false
	}
	secret := object.Spec.CSI.Secrets.Provision
	switch call {
	case "snapshotter-secret-name", "snapshotter-list-secret-name", "group-snapshotter-secret-name", "group-snapshotter-get-secret-name":
		return secret != nil && value == secret.Name
	case "snapshotter-secret-namespace", "snapshotter-list-secret-namespace", "group-snapshotter-secret-namespace", "group-snapshotter-get-secret-namespace":
		return secret != nil && value == namespace
	default:
		return false
	}
}
