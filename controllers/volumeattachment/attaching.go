package volumeattachment

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// attaching is the state of one attach.
type attaching struct {
	attachment *storagev1.VolumeAttachment
	pv         *corev1.PersistentVolume
	// volume is the PersistentVolume as the driver knows it. It differs from pv for an in-tree
	// disk.
	volume   *corev1.PersistentVolume
	node     *corev1.Node
	attacher backend.Attacher
	// driverID is the id that the CSI driver gave the node. Stowage's own drivers have none.
	driverID string
	// callFailed is true if the backend's call returned an error.
	callFailed bool
	// done is true if nothing is left to do in this pass.
	done bool
}

// request is the call that attaches the volume.
func (a *attaching) request() backend.AttachRequest {
	return backend.AttachRequest{
		ID:       a.volume.Spec.CSI.VolumeHandle,
		Volume:   a.pv,
		Node:     backend.NodeIdentity{Name: a.node.Name, ProviderID: a.node.Spec.ProviderID, DriverID: a.driverID},
		ReadOnly: volume.IsReadOnly(a.volume),
	}
}
