package node

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
)

// nodeView is what one pass knows of a node.
type nodeView struct {
	attach.View
	// users are the pods that want each of the wanted volumes.
	users map[corev1.UniqueVolumeName][]*corev1.Pod
	// attached are the wanted volumes with an attachment to the node, or in its
	// volumesAttached: all workers see them.
	attached map[corev1.UniqueVolumeName]bool
	// existing is true if Stowage attaches existing disks to this node.
	existing bool
	// heard are the answers of clouds in this pass, by subject.
	heard map[string]any
}

// nodeSource is the source of reads about a node: the cache, or the API server itself.
type nodeSource interface {
	get(ctx context.Context, key client.ObjectKey, object client.Object) error
	podsOn(ctx context.Context, node string) ([]corev1.Pod, error)
	attachmentsOn(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error)
}

// look reads what decides what is attached to a node. Its cost depends on the node's pods and
// their volumes, not on the size of the cluster.
func (r *Reconciler) look(ctx context.Context, from nodeSource, name string) (*nodeView, error) {
	seen := &nodeView{
		View:  attach.View{Name: name, Now: r.clock.Now(), OtherNodes: map[corev1.UniqueVolumeName][]attach.OtherNode{}},
		users: map[corev1.UniqueVolumeName][]*corev1.Pod{}, attached: map[corev1.UniqueVolumeName]bool{},
		heard: map[string]any{},
	}
	node := &corev1.Node{}
	found, err := find(ctx, from, client.ObjectKey{Name: name}, node)
	if err != nil {
		return nil, err
	}
	if found {
		seen.Node = node
		if !attach.IsManaged(node) {
			return seen, nil
		}
	}
	for _, step := range []func(context.Context, nodeSource, *nodeView) error{
		r.lookAtDrivers, r.lookAtPods, r.lookAtAttachments, r.lookAtReports, r.lookElsewhere,
	} {
		if err := step(ctx, from, seen); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// lookAtAttachments finds the volumes of the node's attachments.
func (r *Reconciler) lookAtAttachments(ctx context.Context, from nodeSource, seen *nodeView) error {
	attachments, err := from.attachmentsOn(ctx, seen.Name)
	if err != nil {
		return fmt.Errorf("listing the attachments of node %s: %w", seen.Name, err)
	}
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
		seen.Attachments = append(seen.Attachments, attach.OfAttachment(object, pv, seen.Node))
	}
	for _, volume := range seen.Desired {
		seen.attached[volume.Name] = names[volume.AttachmentName(seen.Name)] || seen.Node != nil && attach.IsMarkedAttached(seen.Node, volume.Name)
	}
	return nil
}

// lookAtReports resolves names in volumesAttached that contain no driver and handle. Names of
// FlexVolume drivers end with the name of the PersistentVolume.
func (r *Reconciler) lookAtReports(ctx context.Context, from nodeSource, seen *nodeView) error {
	if seen.Node == nil {
		return nil
	}
	for _, attached := range seen.Node.Status.VolumesAttached {
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
				seen.Known = append(seen.Known, volume)
			}
		}
	}
	return nil
}

// awaits reports whether a pod wants a volume that has neither an attachment to the node nor
// an entry in its volumesAttached yet.
func (s *nodeView) awaits(name corev1.UniqueVolumeName) bool {
	_, wanted := s.users[name]
	return wanted && !s.attached[name]
}

// find reads an object, and reports whether it exists.
func find(ctx context.Context, from nodeSource, key client.ObjectKey, object client.Object) (bool, error) {
	err := from.get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %T %s: %w", object, key, err)
	}
	return true, nil
}
