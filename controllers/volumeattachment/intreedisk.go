package volumeattachment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/volume"
)

// inTreeDisks finds the backends of in-tree disks.
type inTreeDisks struct {
	client   client.Reader
	live     client.Reader
	shared   liveread.Reads
	backends backends
}

// translate finds the disk, from the node as it is now: the attachment may have been
// created before another driver began to serve the node.
func (r inTreeDisks) translate(ctx context.Context, a *attaching) error {
	node, err := liveNode(ctx, r.shared, a.attachment.Spec.NodeName)
	if err != nil {
		return err
	}
	drivers := &storagev1.CSINode{}
	err = r.live.Get(ctx, client.ObjectKey{Name: a.attachment.Spec.NodeName}, drivers)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading CSINode %s: %w", drivers.Name, err)
	}
	if err != nil || node == nil || !attach.AttachesInTreeDisks(node, drivers) {
		return backend.WrongNode.Errorf("node %s isn't one whose agent follows pods, without a kubelet and CSI driver %s: nothing is attached to it by %s",
			a.attachment.Spec.NodeName, attachintent.GoogleDriver, stowagev1alpha1.GCEDriver)
	}
	if a.volume, err = attach.TranslateInTreeDisk(a.pv, node); err != nil {
		return backend.WrongNode.Errorf("%w", err)
	}
	a.node = node
	handle := a.volume.Spec.CSI.VolumeHandle
	if a.attachment.Name != volume.AttachmentName(stowagev1alpha1.GCEDriver, handle, node.Name) {
		return backend.Invalid.Errorf("the attachment hasn't the name of disk %s on node %s: delete it, so that it is created again", handle, node.Name)
	}
	return nil
}

// getAttacher finds the backend that attaches a disk: the one in the attachment's
// record, or the only one for the disk's project and zone.
func (r inTreeDisks) getAttacher(ctx context.Context, a *attaching) error {
	name, err := r.backendName(ctx, a)
	if err != nil {
		return err
	}
	if err := r.checkBackend(ctx, name, a.volume); err != nil {
		return err
	}
	found, err := r.backends.get(ctx, a.attachment, name)
	a.volume.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute], a.attacher = name, found.attacher
	return err
}

func (r inTreeDisks) backendName(ctx context.Context, a *attaching) (string, error) {
	intent, err := attachintent.Of(a.attachment)
	if err != nil {
		return "", err
	}
	if intent != nil {
		return intent.Backend, nil
	}
	objects := &stowagev1alpha1.StorageBackendList{}
	if err := r.client.List(ctx, objects); err != nil {
		return "", fmt.Errorf("listing the StorageBackends: %w", err)
	}
	var fitting []string
	for i := range objects.Items {
		if whyNotFor(&objects.Items[i], a.volume) == "" {
			fitting = append(fitting, objects.Items[i].Name)
		}
	}
	handle := a.volume.Spec.CSI.VolumeHandle
	switch len(fitting) {
	case 1:
		return fitting[0], nil
	case 0:
		return "", backend.Invalid.Errorf("no StorageBackend is for disk %s: set gce.existingDisks on one of its project, with its zone in gce.zones", handle)
	default:
		slices.Sort(fitting)
		return "", backend.Invalid.Errorf("several StorageBackends are for disk %s (%s): set gce.existingDisks on one of them only", handle, strings.Join(fitting, ", "))
	}
}

// checkBackend checks, live, whether a backend is for a disk.
func (r inTreeDisks) checkBackend(ctx context.Context, name string, volume *corev1.PersistentVolume) error {
	object, err := r.shared.Backends.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return backend.Invalid.Errorf("StorageBackend %s is gone: create it again", name)
	case err != nil:
		return fmt.Errorf("reading StorageBackend %s: %w", name, err)
	}
	if why := whyNotFor(object, volume); why != "" {
		return backend.Invalid.Errorf("StorageBackend %s, by which disk %s was to be attached, %s", name, volume.Spec.CSI.VolumeHandle, why)
	}
	return nil
}

// whyNotFor returns why a backend does not attach an in-tree disk, or "".
func whyNotFor(object *stowagev1alpha1.StorageBackend, volume *corev1.PersistentVolume) string {
	parts := strings.Split(volume.Spec.CSI.VolumeHandle, "/")
	spec := object.Spec.GCE
	switch {
	case !object.DeletionTimestamp.IsZero():
		return "is being deleted"
	case !attachintent.AllowsInTreeDisks(object):
		return "doesn't set gce.existingDisks"
	case len(parts) != 6 || spec.Project != parts[1] || !slices.Contains(spec.Zones, parts[3]):
		return "isn't for its project and zone"
	}
	return ""
}

// confirm checks the backend of a disk again, after it was recorded: the deletion of a
// backend looks for these records. One of the two sees the other.
func (r inTreeDisks) confirm(ctx context.Context, a *attaching) error {
	if !attachintent.IsInTreeDisk(a.attachment, a.pv) {
		return nil
	}
	return r.checkBackend(ctx, a.volume.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute], a.volume)
}
