package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/node/memory"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/wake"
)

// inspector reads what decides which volumes are attached to a node.
type inspector struct {
	client     client.Reader
	clock      clock.PassiveClock
	otherNodes *otherNodes
	gone       *memory.DeletedAttachments
}

// inspect makes a snapshot of a node. Its cost depends on the node's pods and their volumes,
// not on the size of the cluster.
func (r *inspector) inspect(ctx context.Context, from nodeReader, name string) (*snapshot, error) {
	s := &snapshot{
		View:  attach.View{Name: name, Now: r.clock.Now(), OtherNodes: map[corev1.UniqueVolumeName][]attach.OtherNode{}},
		users: map[corev1.UniqueVolumeName][]*corev1.Pod{}, attached: map[corev1.UniqueVolumeName]bool{},
		answers: map[string]any{},
	}
	node := &corev1.Node{}
	found, err := find(ctx, from, client.ObjectKey{Name: name}, node)
	if err != nil {
		return nil, err
	}
	if found {
		s.Node = node
		if !attach.IsManaged(node) {
			return s, nil
		}
	}
	for _, step := range []func(context.Context, nodeReader, *snapshot) error{
		r.inspectDrivers, inspectPods, r.inspectAttachments, inspectVolumesAttached, r.inspectOtherNodes,
	} {
		if err := step(ctx, from, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// inspectDrivers finds out whether Stowage attaches in-tree disks to the node. Without a
// backend that allows it, it reads nothing else.
func (r *inspector) inspectDrivers(ctx context.Context, from nodeReader, s *snapshot) error {
	if s.Node == nil {
		return nil
	}
	backends := &stowagev1alpha1.StorageBackendList{}
	if err := r.client.List(ctx, backends, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the StorageBackends: %w", err)
	}
	if !slices.ContainsFunc(backends.Items, func(object stowagev1alpha1.StorageBackend) bool { return attachintent.AllowsInTreeDisks(&object) }) {
		return nil
	}
	drivers := &storagev1.CSINode{}
	found, err := find(ctx, from, client.ObjectKey{Name: s.Name}, drivers)
	s.inTreeDisks = found && attach.AttachesInTreeDisks(s.Node, drivers)
	return err
}

// inspectPods finds the volumes that the node's pods need.
func inspectPods(ctx context.Context, from nodeReader, s *snapshot) error {
	pods, err := from.podsOn(ctx, s.Name)
	if err != nil {
		return fmt.Errorf("listing the pods of node %s: %w", s.Name, err)
	}
	for i := range pods {
		if !attach.NeedsVolumes(&pods[i], s.Node) {
			continue
		}
		for j := range pods[i].Spec.Volumes {
			volume, attachable, err := desiredVolume(ctx, from, s, podVolume{&pods[i], &pods[i].Spec.Volumes[j]})
			if err != nil {
				return err
			}
			if attachable {
				s.add(volume, &pods[i])
			}
		}
	}
	return nil
}

// inspectAttachments finds the volumes of the node's attachments.
func (r *inspector) inspectAttachments(ctx context.Context, from nodeReader, s *snapshot) error {
	attachments, err := from.attachmentsOn(ctx, s.Name)
	if err != nil {
		return fmt.Errorf("listing the attachments of node %s: %w", s.Name, err)
	}
	r.gone.Mark(s.Name, attachments)
	names := map[string]bool{}
	for i := range attachments {
		object := &attachments[i]
		names[object.Name] = true
		var pv *corev1.PersistentVolume
		if of := object.Spec.Source.PersistentVolumeName; of != nil {
			known := &corev1.PersistentVolume{}
			found, err := find(ctx, from, client.ObjectKey{Name: *of}, known)
			if err != nil {
				return err
			}
			if found {
				pv = known
			}
		}
		s.Attachments = append(s.Attachments, attach.OfAttachment(object, pv, s.Node))
	}
	for _, volume := range s.Desired {
		s.attached[volume.Name] = names[volume.AttachmentName(s.Name)] || s.Node != nil && attach.IsMarkedAttached(s.Node, volume.Name)
	}
	return nil
}

// inspectVolumesAttached resolves names in volumesAttached that contain no driver and handle.
// Names of FlexVolume drivers end with the name of the PersistentVolume.
func inspectVolumesAttached(ctx context.Context, from nodeReader, s *snapshot) error {
	if s.Node == nil {
		return nil
	}
	for _, attached := range s.Node.Status.VolumesAttached {
		at := strings.LastIndexByte(string(attached.Name), '/')
		if strings.HasPrefix(string(attached.Name), "kubernetes.io/") || at < 0 {
			continue
		}
		pv := &corev1.PersistentVolume{}
		found, err := find(ctx, from, client.ObjectKey{Name: string(attached.Name[at+1:])}, pv)
		if err != nil {
			return err
		}
		if found {
			if volume, attachable, err := attach.OfPersistentVolume(pv); err == nil && attachable && volume.Name == attached.Name {
				s.Known = append(s.Known, volume)
			}
		}
	}
	return nil
}

// inspectOtherNodes finds the other nodes that have desired volumes which one node at a time
// can have.
func (r *inspector) inspectOtherNodes(ctx context.Context, _ nodeReader, s *snapshot) error {
	for _, volume := range s.Desired {
		if !volume.SingleNode || s.isAttached(volume) {
			continue
		}
		others, err := r.otherNodes.with(ctx, volume, s.Name)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			s.OtherNodes[volume.Name] = others
		}
	}
	return nil
}
