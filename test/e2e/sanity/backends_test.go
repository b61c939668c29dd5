package sanity_test

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// onNode selects a node by its name.
func onNode(name string) map[string]string { return map[string]string{corev1.LabelHostname: name} }

// share is the StorageBackend of a server's share.
func share(server *guest.NFSServer) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(shareBackend, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = nil
		object.Spec.NFS = &stowagev1alpha1.NFSBackend{
			Server: guest.Address, Path: stowagev1alpha1.AbsolutePath(server.Share()), NFSVersion: "4.1",
			MountOptions: []stowagev1alpha1.MountOption{
				stowagev1alpha1.MountOption(server.PortOption()), stowagev1alpha1.MountOption(server.MountdOption()),
			},
		}
	})
}

// onDisks is a StorageBackend of a folder below the agents' base.
func onDisks(base, name string, spec stowagev1alpha1.LocalBackend) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(name, func(object *stowagev1alpha1.StorageBackend) {
		spec.Path = stowagev1alpha1.AbsolutePath(filepath.Join(base, name))
		object.Spec.Local = &spec
	})
}

// inCloud is a StorageBackend of disks of a type in a cloud.
func inCloud(name string, port int, diskType string) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(name, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = nil
		object.Spec.GCE = &stowagev1alpha1.GCEBackend{
			Project: cluster.CloudProject, Zones: []string{cluster.CloudZone}, DiskType: diskType, Endpoint: fmt.Sprintf("http://127.0.0.1:%d/compute/v1/", port),
		}
	})
}

// asInstance completes a node before it is registered: the machine is an instance of the
// cloud.
func asInstance(node *corev1.Node) {
	if node.Name != machineName {
		return
	}
	node.Labels[corev1.LabelTopologyZone] = cluster.CloudZone
	node.Spec.ProviderID = "gce://" + cluster.CloudProject + "/" + cluster.CloudZone + "/" + node.Name
}
