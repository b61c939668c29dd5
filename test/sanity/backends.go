package main

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/cluster"
	"github.com/stowage-dev/stowage/test/fixture"
	"github.com/stowage-dev/stowage/test/guests"
)

// disksLabel is what nodes with disks for local volumes bear.
const disksLabel = "sanity.stowage.dev/disks"

// share is the StorageBackend of a server's share.
func share(server *guests.NFSServer) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(shareBackend, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = nil
		object.Spec.NFS = &stowagev1alpha1.NFSBackend{
			Server: guests.Address, Path: stowagev1alpha1.AbsolutePath(server.Share()), NFSVersion: "4.1",
			MountOptions: []stowagev1alpha1.MountOption{
				stowagev1alpha1.MountOption(server.PortOption()), stowagev1alpha1.MountOption(server.MountdOption()),
			},
		}
	})
}

// onDisks is the StorageBackend of a folder below the agent's base, for volumes of a
// layout.
func onDisks(base, name string, layout stowagev1alpha1.LocalLayout, fsType string) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(name, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = &stowagev1alpha1.LocalBackend{
			Path: stowagev1alpha1.AbsolutePath(filepath.Join(base, name)), NodeSelector: map[string]string{disksLabel: "yes"},
			Layout: layout, FSType: fsType,
		}
	})
}

// inCloud is the StorageBackend of the cloud's disks.
func inCloud(endpoint string) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(disksBackend, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = nil
		object.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: cluster.CloudProject, Zones: []string{cluster.CloudZone}, Endpoint: endpoint}
	})
}

// register completes a node before it is registered: the machine is an instance of the
// cloud, and has disks.
func register(node *corev1.Node) {
	if node.Name != machineName {
		return
	}
	node.Labels[disksLabel] = "yes"
	node.Labels[corev1.LabelTopologyZone] = cluster.CloudZone
	node.Spec.ProviderID = "gce://" + cluster.CloudProject + "/" + cluster.CloudZone + "/" + node.Name
}
