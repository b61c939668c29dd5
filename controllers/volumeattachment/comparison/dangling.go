package comparison

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/volume"
)

// detachDangling records events about dangling attachments, and detaches those that were seen for a
// whole interval.
//
// It detaches nothing itself. It creates a VolumeAttachment; the reconciler of
// VolumeAttachments deletes it and then detaches the volume like any other. If a pod needs the
// volume there before that, its attachment has the same name and cannot be created. So no volume
// is detached that was just requested.
func (r *Comparer) detachDangling(ctx context.Context, object *stowagev1alpha1.StorageBackend, listed []backend.Attached) error {
	dangling, err := r.dangling(ctx, object, listed)
	if err != nil {
		return err
	}
	if r.storage.Metrics != nil {
		r.storage.Metrics.Compared(object.Name, len(dangling))
	}
	for attached, seen := range r.markSeen(object.Name, dangling) {
		node, err := r.nodeOf(ctx, object, attached)
		if err != nil {
			return err
		}
		switch {
		case !seen.again:
			r.recordDangling(object, attached, node)
		case node == nil || r.clock.Since(seen.since) < r.interval:
		default:
			if err := r.createDangling(ctx, object, attached, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// dangling returns the dangling attachments. The cache only saves live reads.
func (r *Comparer) dangling(ctx context.Context, object *stowagev1alpha1.StorageBackend, listed []backend.Attached) ([]backend.Attached, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the attachments: %w", err)
	}
	found, err := r.withoutObject(ctx, object, liveread.GroupAttachments(attachments.Items), listed)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return r.withoutObject(ctx, object, all, found)
}

// withoutObject returns the listed volumes without a VolumeAttachment. A volume that a CSI call made is attached by
// such calls, too, and has none.
func (r *Comparer) withoutObject(ctx context.Context, object *stowagev1alpha1.StorageBackend, all liveread.Attachments, listed []backend.Attached) ([]backend.Attached, error) {
	driver := backend.DriverOf(object)
	var found []backend.Attached
	for _, attached := range listed {
		if named.IsVolume(attached.ID) {
			continue
		}
		volumes, err := index.VolumesOf(ctx, r.client, volume.Key(driver, attached.ID))
		if err != nil {
			return nil, err
		}
		objects := slices.Clone(all.Handle[volume.Key(driver, attached.ID)])
		for i := range volumes {
			objects = append(objects, all.Volume[volumes[i].Name]...)
		}
		if !slices.ContainsFunc(objects, func(attachment *storagev1.VolumeAttachment) bool { return mayBeOn(attachment, attached) }) {
			found = append(found, attached)
		}
	}
	return found, nil
}

// mayBeOn reports whether an attachment is, or may be, to a machine.
func mayBeOn(attachment *storagev1.VolumeAttachment, attached backend.Attached) bool {
	if attached.DriverID != "" {
		id := attachment.Annotations[attachintent.DriverIDAnnotation]
		return id == "" || id == attached.DriverID
	}
	providerID := attached.ProviderID
	intent, err := attachintent.Of(attachment)
	instance := attachintent.InstanceOf(attachment, intent)
	return err != nil || instance == "" || instance == providerID
}

// markSeen stores the dangling attachments of a backend and returns when each was first seen.
func (r *Comparer) markSeen(name string, dangling []backend.Attached) map[backend.Attached]firstSeen {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, now := r.seen[name], map[backend.Attached]firstSeen{}
	for _, attached := range dangling {
		now[attached] = firstSeen{since: r.clock.Now()}
		if first, known := before[attached]; known {
			now[attached] = firstSeen{since: first.since, again: true}
		}
	}
	if r.seen == nil {
		r.seen = map[string]map[backend.Attached]firstSeen{}
	}
	r.seen[name] = now
	if len(now) == 0 {
		delete(r.seen, name)
	}
	return now
}

// nodeOf finds the node of a machine. It returns nil if the machine is not in the cluster.
func (r *Comparer) nodeOf(ctx context.Context, object *stowagev1alpha1.StorageBackend, attached backend.Attached) (*corev1.Node, error) {
	name, providerID := "", attached.ProviderID
	if attached.DriverID != "" {
		names, err := r.nodesOf(ctx, object)
		if err != nil {
			return nil, err
		}
		name = names[attached.DriverID]
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	for i := range nodes.Items {
		if providerID != "" && nodes.Items[i].Spec.ProviderID == providerID || name != "" && nodes.Items[i].Name == name {
			return &nodes.Items[i], nil
		}
	}
	return nil, nil
}

func (r *Comparer) recordDangling(object *stowagev1alpha1.StorageBackend, attached backend.Attached, node *corev1.Node) {
	const what = "volume %s is attached to %s, and no VolumeAttachment requests it: "
	if node == nil {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, event.StrayAttachment, "Compare",
			what+"that is no node of this cluster, so detach it there if nothing needs it", attached.ID, cmp.Or(attached.ProviderID, attached.DriverID))
		return
	}
	r.events.Eventf(object, nil, corev1.EventTypeWarning, event.StrayAttachment, "Compare",
		what+"it is detached after %s, unless node %s uses it", attached.ID, cmp.Or(attached.ProviderID, attached.DriverID), r.interval, node.Name)
}

// createDangling creates an attachment that its reconciler deletes.
func (r *Comparer) createDangling(ctx context.Context, object *stowagev1alpha1.StorageBackend, attached backend.Attached, node *corev1.Node) error {
	record, err := json.Marshal(attachintent.Intent{Backend: object.Name, Volume: attached.ID, Instance: attached.ProviderID})
	if err != nil {
		return err
	}
	driver := backend.DriverOf(object)
	volumes, err := index.VolumesOf(ctx, r.client, volume.Key(driver, attached.ID))
	if err != nil {
		return err
	}
	// If the PersistentVolume is gone, the record on the attachment is enough.
	objectName := attached.ID
	for i := range volumes {
		objectName = volumes[i].Name
	}
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:       volume.AttachmentName(driver, attached.ID, node.Name),
			Finalizers: []string{attachintent.Finalizer(driver)},
			Annotations: map[string]string{
				stowagev1alpha1.AttachmentAnnotation: string(record), stowagev1alpha1.StrayAnnotation: "true",
			},
		},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: node.Name,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &objectName},
		},
	}
	if attached.DriverID != "" {
		attachment.Annotations[attachintent.DriverIDAnnotation] = attached.DriverID
	}
	if err := r.client.Create(ctx, attachment); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the attachment %s, to detach its volume: %w", attachment.Name, err)
	}
	return nil
}
