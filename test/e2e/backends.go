package main

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/guests"
)

// Backends, and the classes that they keep.
const (
	directories = "directories"
	images      = "images"
	shared      = "shared"
	// disks are of the guests' cloud, and machineDisks of the machine's.
	disks        = "disks"
	machineDisks = "machine-disks"
)

// backends are those that stories share.
func (b *bed) backends() []client.Object {
	share := &stowagev1alpha1.NFSBackend{
		Server: guests.Address, Path: stowagev1alpha1.AbsolutePath(b.share.Share()), NFSVersion: "4.1", AllowInline: true,
		MountOptions: []stowagev1alpha1.MountOption{
			stowagev1alpha1.MountOption(b.share.PortOption()), stowagev1alpha1.MountOption(b.share.MountdOption()),
		},
	}
	return []client.Object{
		backend(directories, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{Path: base + directories}}),
		backend(images, stowagev1alpha1.StorageBackendSpec{Local: &stowagev1alpha1.LocalBackend{
			Path: base + images, Layout: stowagev1alpha1.LayoutImage,
		}}),
		backend(shared, stowagev1alpha1.StorageBackendSpec{NFS: share}),
		disksAt(disks, cloudPort), disksAt(machineDisks, loopPort),
	}
}

func disksAt(name, port string) client.Object {
	return backend(name, stowagev1alpha1.StorageBackendSpec{GCE: &stowagev1alpha1.GCEBackend{
		Project: project, Zones: []string{zone}, Endpoint: endpointAt(port) + "/compute/v1/",
	}})
}

// backend is one that keeps a class of its own name, whose volumes may grow.
func backend(name string, spec stowagev1alpha1.StorageBackendSpec) *stowagev1alpha1.StorageBackend {
	made := &stowagev1alpha1.StorageBackend{Spec: spec}
	made.Name = name
	made.Spec.StorageClass = &stowagev1alpha1.StorageClassTemplate{AllowVolumeExpansion: true}
	return made
}
