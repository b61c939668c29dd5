package nodemanager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// ensureDescribed writes, for a container runtime, where each container of a pod has which
// volume. A volume that isn't mounted withdraws the descriptions, so that no container starts
// without it. An unresolved one, as when the API server is down, leaves them as they are.
func ensureDescribed(tree poddir.Tree, at *pass) error {
	resolved := true
	for i, state := range at.states {
		if state.Done {
			continue
		}
		if at.desired.Volumes[i].Unresolved == nil {
			return tree.WithdrawContainers(at.pod.UID)
		}
		resolved = false
	}
	if !resolved {
		return nil
	}
	common, err := describePod(tree, at)
	if err != nil {
		return err
	}
	for _, each := range container.All(at.pod) {
		description, err := common.Describe(each)
		if err == nil {
			err = container.Write(tree.ContainerDir(at.pod.UID, each.Name), description)
		}
		if err != nil {
			return fmt.Errorf("describing container %s: %w", each.Name, err)
		}
	}
	return nil
}

// describePod returns what the containers of a pod have in common.
func describePod(tree poddir.Tree, at *pass) (container.Pod, error) {
	mounted := map[string]container.Volume{}
	var objects []*corev1.PersistentVolume
	for _, volume := range at.desired.Volumes {
		described, err := describeVolume(tree, at.pod.UID, volume.Resolved)
		if err != nil {
			return container.Pod{}, err
		}
		mounted[volume.Volume.Name] = described
		if object := volume.Resolved.PersistentVolume; object != nil {
			objects = append(objects, object)
		}
	}
	return container.Pod{Volumes: mounted, Groups: ownership.SupplementalGroups(at.pod, objects)}, nil
}

func describeVolume(tree poddir.Tree, uid types.UID, resolved *resolve.ResolvedVolume) (container.Volume, error) {
	name := resolved.Name()
	described := container.Volume{
		Path:   resolved.VisibleAt(tree, uid),
		Access: accessOf(resolved),
		Part:   func(container string, index int) string { return tree.SubPath(uid, name, container, index) },
	}
	if !resolved.IsBlock() {
		return described, nil
	}
	var err error
	described.Device, err = container.NumbersOf(described.Path)
	return described, err
}

// accessOf is what the pod's containers may do with a volume at most: of two volumes with the
// same claim, one may be read-only.
func accessOf(resolved *resolve.ResolvedVolume) mount.Access {
	claim := resolved.Volume.PersistentVolumeClaim
	if claim != nil && claim.ReadOnly || content.IsProjected(resolved.Volume) {
		return mount.ReadOnly
	}
	return resolved.Access
}
