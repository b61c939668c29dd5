// Package configmap serves configMap volumes: the keys of a ConfigMap as files, on the node's disk.
package configmap

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata"
)

// New returns the volume type.
func New(mounter mount.Mounter) apidata.Plugin {
	return apidata.New(mounter, apidata.Type{
		Name:     "kubernetes.io/configmap",
		InMemory: false,
		Is:       func(volume corev1.Volume) bool { return volume.ConfigMap != nil },
	})
}
