package volumeattachment

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// driverIDOf returns the id that a CSI driver gave a node, from a live read of its CSINode. It is
// empty if there is none.
func driverIDOf(ctx context.Context, live client.Reader, driver, node string) (string, error) {
	object := &storagev1.CSINode{}
	if err := live.Get(ctx, client.ObjectKey{Name: node}, object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading CSINode %s: %w", node, err)
		}
		return "", nil
	}
	for _, registered := range object.Spec.Drivers {
		if registered.Name == driver {
			return registered.NodeID, nil
		}
	}
	return "", nil
}
