package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wrap"
)

// csiCluster is what CSI backends read of the cluster. It implements csi.Cluster.
type csiCluster struct {
	*keys
	// cached reads nodes.
	cached client.Reader
}

// Nodes implements csi.Cluster.
func (c csiCluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	nodes := &corev1.NodeList{}
	err := c.cached.List(ctx, nodes, client.UnsafeDisableDeepCopy)
	return nodes.Items, wrap.Error(err, "listing nodes")
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=csinodes,verbs=get;list;watch

// CSINodes implements csi.Cluster.
func (c csiCluster) CSINodes(ctx context.Context) ([]storagev1.CSINode, error) {
	nodes := &storagev1.CSINodeList{}
	err := c.cached.List(ctx, nodes, client.UnsafeDisableDeepCopy)
	return nodes.Items, wrap.Error(err, "listing CSINodes")
}
