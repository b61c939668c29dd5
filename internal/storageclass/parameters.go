package storageclass

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// SidecarPrefix is that of parameters which external-provisioner reads, and no driver gets.
	SidecarPrefix = "csi.storage.k8s.io/"
	// FormerFSType is the name of the parameter for the file system before Kubernetes 1.15.
	FormerFSType = "fstype"
)

// DriverParameters returns the parameters of a class that its CSI driver gets.
func DriverParameters(class *storagev1.StorageClass) map[string]string {
	parameters := map[string]string{}
	for key, value := range class.Parameters {
		if key != stowagev1alpha1.BackendParameter && key != FormerFSType && !strings.HasPrefix(key, SidecarPrefix) {
			parameters[key] = value
		}
	}
	return parameters
}
