package csi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Cluster is what the backend reads of the cluster.
type Cluster interface {
	// Secret returns a Secret of the manager's own namespace. An error has a kind, and a message that
	// says what an administrator has to do.
	Secret(ctx context.Context, name string) (map[string][]byte, error)
	// Nodes and CSINodes return all of the cluster, as a cache has them. Callers don't change them.
	Nodes(ctx context.Context) ([]corev1.Node, error)
	CSINodes(ctx context.Context) ([]storagev1.CSINode, error)
}
