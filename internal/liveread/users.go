package liveread

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Users maps the kubelet's name of a volume to a node that has it in volumesInUse or
// volumesAttached.
type Users map[corev1.UniqueVolumeName]string

func listUsers(ctx context.Context, live client.Reader) (Users, error) {
	nodes := &corev1.NodeList{}
	if err := live.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	found := Users{}
	for i := range nodes.Items {
		for _, name := range nodes.Items[i].Status.VolumesInUse {
			found[name] = nodes.Items[i].Name
		}
		for _, attached := range nodes.Items[i].Status.VolumesAttached {
			found[attached.Name] = nodes.Items[i].Name
		}
	}
	return found, nil
}
