package comparison

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// endStrays records events about dangling attachments, and detaches those that were seen for a
// whole interval.
//
// It detaches nothing itself. It creates a VolumeAttachment; the reconciler of
// VolumeAttachments deletes it and then detaches the volume like any other. If a pod needs the
// volume there meanwhile, its attachment has the same name and cannot be created. So no volume
// is detached that was just requested.
func (r *Comparer) endStrays(ctx context.Context, object *stowagev1alpha1.StorageBackend, held []backend.Attached) error {
	strays, err := r.strays(ctx, object, held)
	if err != nil {
		return err
	}
	if r.storage.Metrics != nil {
		r.storage.Metrics.Compared(object.Name, len(strays))
	}
	for stray, sighting := range r.see(object.Name, strays) {
		node, err := r.nodeOf(ctx, stray.ProviderID)
		if err != nil {
			return err
		}
		switch {
		case !sighting.again:
			r.tellOfStray(object, stray, node)
		case node == nil || r.clock.Since(sighting.since) < r.interval:
		default:
			if err := r.end(ctx, object, stray, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// strays returns the dangling attachments. The cache only saves live reads.
func (r *Comparer) strays(ctx context.Context, object *stowagev1alpha1.StorageBackend, held []backend.Attached) ([]backend.Attached, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the attachments: %w", err)
	}
	unasked, err := r.unasked(ctx, object, liveread.GroupAttachments(attachments.Items), held)
	if err != nil || len(unasked) == 0 {
		return nil, err
	}
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return r.unasked(ctx, object, all, unasked)
}

func (r *Comparer) unasked(ctx context.Context, object *stowagev1alpha1.StorageBackend, all liveread.Attachments, held []backend.Attached) ([]backend.Attached, error) {
	driver := backend.DriverOf(object)
	var unasked []backend.Attached
	for _, attached := range held {
		volumes, err := r.volumesFor(ctx, driver, attached.ID)
		if err != nil {
			return nil, err
		}
		asking := slices.Clone(all.Handle[volume.Key(driver, attached.ID)])
		for i := range volumes {
			asking = append(asking, all.Volume[volumes[i].Name]...)
		}
		if !slices.ContainsFunc(asking, func(attachment *storagev1.VolumeAttachment) bool { return mayBeOn(attachment, attached.ProviderID) }) {
			unasked = append(unasked, attached)
		}
	}
	return unasked, nil
}

// mayBeOn reports whether an attachment is, or may be, to a machine.
func mayBeOn(attachment *storagev1.VolumeAttachment, providerID string) bool {
	intent, err := attachintent.Of(attachment)
	instance := attachintent.InstanceOf(attachment, intent)
	return err != nil || instance == "" || instance == providerID
}

func (r *Comparer) volumesFor(ctx context.Context, driver, id string) ([]corev1.PersistentVolume, error) {
	volumes := &corev1.PersistentVolumeList{}
	err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: volume.Key(driver, id)}, client.UnsafeDisableDeepCopy)
	return volumes.Items, wrap.Error(err, "listing the volumes of handle %s", id)
}

// sighting is when a dangling attachment was first seen, and whether it was seen before.
type sighting struct {
	since time.Time
	again bool
}

// see stores the dangling attachments of a backend and returns when each was first seen.
func (r *Comparer) see(name string, strays []backend.Attached) map[backend.Attached]sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, now := r.seen[name], map[backend.Attached]sighting{}
	for _, stray := range strays {
		now[stray] = sighting{since: r.clock.Now()}
		if first, known := before[stray]; known {
			now[stray] = sighting{since: first.since, again: true}
		}
	}
	if r.seen == nil {
		r.seen = map[string]map[backend.Attached]sighting{}
	}
	r.seen[name] = now
	if len(now) == 0 {
		delete(r.seen, name)
	}
	return now
}

// nodeOf finds the node of a machine. It returns nil if the machine is not in the cluster.
func (r *Comparer) nodeOf(ctx context.Context, providerID string) (*corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	for i := range nodes.Items {
		if providerID != "" && nodes.Items[i].Spec.ProviderID == providerID {
			return &nodes.Items[i], nil
		}
	}
	return nil, nil
}

func (r *Comparer) tellOfStray(object *stowagev1alpha1.StorageBackend, stray backend.Attached, node *corev1.Node) {
	const what = "volume %s is attached to %s, and no VolumeAttachment asks for it: "
	if node == nil {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, "StrayAttachment", "Compare",
			what+"that is no node of this cluster, so detach it there if nobody needs it", stray.ID, stray.ProviderID)
		return
	}
	r.events.Eventf(object, nil, corev1.EventTypeWarning, "StrayAttachment", "Compare",
		what+"it is detached after %s, unless node %s uses it", stray.ID, stray.ProviderID, r.interval, node.Name)
}

// end creates an attachment that its reconciler deletes.
func (r *Comparer) end(ctx context.Context, object *stowagev1alpha1.StorageBackend, stray backend.Attached, node *corev1.Node) error {
	said, err := json.Marshal(attachintent.Intent{Backend: object.Name, Volume: stray.ID, Instance: stray.ProviderID})
	if err != nil {
		return err
	}
	volumes, err := r.volumesFor(ctx, backend.DriverOf(object), stray.ID)
	if err != nil {
		return err
	}
	// If the PersistentVolume is gone, the record on the attachment is enough.
	objectName := stray.ID
	for i := range volumes {
		objectName = volumes[i].Name
	}
	driver := backend.DriverOf(object)
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:       volume.AttachmentName(driver, stray.ID, node.Name),
			Finalizers: []string{attachintent.Finalizer(driver)},
			Annotations: map[string]string{
				stowagev1alpha1.AttachmentAnnotation: string(said), stowagev1alpha1.StrayAnnotation: "true",
			},
		},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: node.Name,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &objectName},
		},
	}
	if err := r.client.Create(ctx, attachment); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the attachment %s, to end it: %w", attachment.Name, err)
	}
	return nil
}
