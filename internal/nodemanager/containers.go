package nodemanager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/nodemanager/container"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// ensureDescribed writes down where each container of a pod sees which volume, for
// whatever runs it, once all volumes are there. While one is known not to be, nothing is
// written down, so that no container starts without it; while one isn't known of, as the
// API server is down for example, what is written stays.
func (r *Reconciler) ensureDescribed(pod *corev1.Pod, wanted *DesiredPod, states []podstatus.Progress) error {
	known := true
	for i, at := range states {
		if at.Done {
			continue
		}
		if wanted.Volumes[i].Unresolved == nil {
			return r.Tree.WithdrawContainers(pod.UID)
		}
		known = false
	}
	if !known {
		return nil
	}
	description, err := r.describe(pod, wanted)
	if err != nil {
		return err
	}
	for _, each := range container.All(pod) {
		of, err := description.Describe(each)
		if err == nil {
			err = container.Write(r.Tree.ContainerDir(pod.UID, each.Name), of)
		}
		if err != nil {
			return fmt.Errorf("describing container %s: %w", each.Name, err)
		}
	}
	return nil
}

// describe is what the containers of a pod have in common.
func (r *Reconciler) describe(pod *corev1.Pod, wanted *DesiredPod) (container.Pod, error) {
	places := map[string]container.Place{}
	var objects []*corev1.PersistentVolume
	for _, volume := range wanted.Volumes {
		place, err := r.placeOf(pod.UID, volume.Resolved)
		if err != nil {
			return container.Pod{}, err
		}
		places[volume.Volume.Name] = place
		if object := volume.Resolved.PersistentVolume; object != nil {
			objects = append(objects, object)
		}
	}
	return container.Pod{Volumes: places, Groups: ownership.SupplementalGroups(pod, objects)}, nil
}

// placeOf is where a volume is on the node.
func (r *Reconciler) placeOf(uid types.UID, resolved *resolve.ResolvedVolume) (container.Place, error) {
	name := resolved.Name()
	place := container.Place{
		Path:   r.visibleAt(uid, resolved),
		Access: accessIn(resolved),
		Part:   func(container string, index int) string { return r.Tree.SubPath(uid, name, container, index) },
	}
	if !resolved.IsBlock() {
		return place, nil
	}
	var err error
	place.Device, err = container.NumbersOf(place.Path)
	return place, err
}
