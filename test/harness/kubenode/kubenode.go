// Package kubenode makes nodes of Kubernetes: containerd and a kubelet on a machine of
// package guest, which is a guest with a kernel of its own or the machine itself in
// the test's namespaces. End-to-end tests with pods that run use it.
//
// A test's program serves Kubernetes among its services, and joins hosts to a cluster
// with Join. All of a node's state is on one disk, its /var; all else is in memory. It
// never writes outside of these, so that a node on the machine itself leaves nothing
// behind. Control planes, images and what pods do are the test's.
package kubenode

import (
	"context"
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

const dir = "/run/kubenode"

// Settings are a node's, in paths as the node sees them.
type Settings struct {
	Name, Address string
	// Disk is a block device, or an image, that becomes /var. An empty one is formatted.
	Disk string
	// Kubelet is the program, Kubeconfig the node's credential, ClientAuthority the kubelet's
	// clientCAFile, and Logs a folder.
	Kubelet, Kubeconfig, ClientAuthority, Logs string
	// PodNetwork has the addresses of the node's pods, such as 10.244.1.0/24.
	PodNetwork string
	// Pause is the name of the image that holds a pod's namespaces.
	Pause string
	// Cgroup is that of all pods, such as /pods.
	Cgroup string
	// SharedKernel says that others live with the same kernel, which is not the node's
	// to change.
	SharedKernel bool
	// Hosts are the addresses of nodes, by name.
	Hosts map[string]string
	// Folders are what the node is shown where, such as /run/cloud: folders, by the path
	// at which the node has them.
	Folders map[string]string
	// Modules of the kernel that are loaded first.
	Modules []string
	// Labels are the node's from its start, and ProviderID is its name in a cloud.
	Labels map[string]string
	// ProviderID is the node's name in a cloud.
	ProviderID string
}

// Dir is where configuration lies.
func (Settings) Dir() string { return dir }

// Machine is the address of the machine.
func (Settings) Machine() string { return guest.Address }

// Kubernetes is what a host does to be a node. Its methods are called over the wire.
type Kubernetes struct {
	containerd, kubelet *cluster.Program
}

// Join prepares the host, and starts containerd and the kubelet. It is called once
// after each boot, and doesn't wait until the node is Ready.
func (k *Kubernetes) Join(settings Settings, _ *guest.Nothing) error {
	if k.kubelet != nil {
		return errors.New("it is a node already")
	}
	ctx := context.Background() // a call has none: it ends with the host
	for _, step := range []struct {
		what string
		do   func(context.Context, Settings) error
	}{
		{"preparing the host", prepare},
		{"writing the configuration", writeConfiguration},
		{"starting containerd", k.startContainerd},
		{"starting the kubelet", k.startKubelet},
	} {
		if err := step.do(ctx, settings); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}
