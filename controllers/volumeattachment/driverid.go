package volumeattachment

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
)

// getDriverID finds the id that the CSI driver gave the node. An attachment that has another on
// record may be attached to the machine that had that id: it is deleted, so that it is detached
// there, and is created again if a pod needs the volume.
func (r *attacher) getDriverID(ctx context.Context, a *attaching) error {
	driver := a.attachment.Spec.Attacher
	if backend.IsOurs(driver) {
		return nil
	}
	id, err := driverIDOf(ctx, r.live, driver, a.attachment.Spec.NodeName)
	if err != nil {
		return err
	}
	recorded := a.attachment.Annotations[attachintent.DriverIDAnnotation]
	switch {
	case a.attachment.Status.Attached && (recorded != "" || id == ""):
		a.driverID = recorded
	case id == "":
		return backend.NotReady.Errorf("CSI driver %s has not registered with node %s: nothing is attached before its CSINode lists the driver",
			driver, a.attachment.Spec.NodeName)
	case recorded != "" && recorded != id:
		a.done = true
		return r.delete(ctx, a.attachment)
	default:
		a.driverID = id
	}
	return nil
}

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

// findDriverID completes the identity of the node that a volume is detached from. What the
// attachment records comes first: the CSINode may be another machine's by now.
func (r *detacher) findDriverID(ctx context.Context, d *detaching) error {
	driver := d.attachment.Spec.Attacher
	if backend.IsOurs(driver) || d.from.DriverID != "" {
		return nil
	}
	id, err := driverIDOf(ctx, r.live, driver, d.from.Name)
	switch {
	case err != nil:
		return err
	case id == "":
		return backend.Invalid.Errorf("neither the annotation %s nor CSINode %s has the id that driver %s gave the node: detach the volume by hand, "+
			"and take the finalizer %s off this VolumeAttachment", attachintent.DriverIDAnnotation, d.from.Name, driver, attachintent.Finalizer(driver))
	}
	d.from.DriverID = id
	return nil
}
