// Package downwardapi serves downwardAPI volumes: fields of the pod as files, in memory.
package downwardapi

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata"
)

// New returns the volume type.
func New(mounter mount.Mounter) apidata.Plugin {
	return apidata.New(mounter, apidata.Type{
		Name:     "kubernetes.io/downward-api",
		InMemory: true,
		Is:       func(volume corev1.Volume) bool { return volume.DownwardAPI != nil },
	})
}
