package kube

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Base is the folder of each node below which local volumes lie.
const Base = "/var/lib/stowage/"

// Backends, and the classes that they keep.
const (
	Directories = "directories"
	Images      = "images"
	Shared      = "shared"
	// Disks are of the guests' cloud, and MachineDisks of the machine's.
	Disks        = "disks"
	MachineDisks = "machine-disks"
)

// Backends are those that all specs share.
func (c *Cluster) Backends() []client.Object {
	share := &stowagev1alpha1.NFSBackend{
		Server: guest.Address, Path: stowagev1alpha1.AbsolutePath(c.Share.Share()), NFSVersion: "4.1", AllowInline: true,
		MountOptions: []stowagev1alpha1.MountOption{
			stowagev1alpha1.MountOption(c.Share.PortOption()), stowagev1alpha1.MountOption(c.Share.MountdOption()),
		},
	}
	return []client.Object{
		Backend(Directories, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{Path: Base + Directories}}),
		Backend(Images, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{
			Path: Base + Images, Layout: stowagev1alpha1.LayoutImage, FSType: c.differences.FSType,
		}}),
		Backend(Shared, stowagev1alpha1.StorageBackendSpec{NFS: share}),
		disksAt(Disks, cloudPort, ""), disksAt(MachineDisks, loopPort, c.differences.FSType),
	}
}

func disksAt(name, port string, fsType string) client.Object {
	return Backend(name, stowagev1alpha1.StorageBackendSpec{GCE: &stowagev1alpha1.GCEBackend{
		Project: Project, Zones: []string{Zone}, Endpoint: endpointAt(port) + "/compute/v1/", FSType: fsType,
	}})
}

// Backend is one that keeps a class of its own name, whose volumes may grow.
func Backend(name string, spec stowagev1alpha1.StorageBackendSpec) *stowagev1alpha1.StorageBackend {
	made := &stowagev1alpha1.StorageBackend{Spec: spec}
	made.Name = name
	made.Spec.StorageClass = &stowagev1alpha1.StorageClassTemplate{AllowVolumeExpansion: true}
	return made
}
