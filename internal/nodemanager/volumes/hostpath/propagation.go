package hostpath

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// propagationOf is the widest mountPropagation that a container of the pod asks for. The container
// runtime restricts it for the others.
func propagationOf(spec volumes.Spec) (mount.Propagation, error) {
	most := mount.Private
	if spec.Pod == nil {
		return most, nil
	}
	for _, user := range container.All(spec.Pod) {
		for _, used := range user.VolumeMounts {
			asked := askedBy(used)
			if used.Name != spec.Volume.Name || asked == mount.Private {
				continue
			}
			if err := checkPropagation(user, used); err != nil {
				return mount.Private, err
			}
			most = max(most, asked)
		}
	}
	return most, nil
}

func askedBy(used corev1.VolumeMount) mount.Propagation {
	if used.MountPropagation == nil {
		return mount.Private
	}
	switch *used.MountPropagation {
	case corev1.MountPropagationHostToContainer:
		return mount.Slave
	case corev1.MountPropagationBidirectional:
		return mount.Shared
	default:
		return mount.Private
	}
}

func checkPropagation(user corev1.Container, used corev1.VolumeMount) error {
	isPrivileged := user.SecurityContext != nil && user.SecurityContext.Privileged != nil && *user.SecurityContext.Privileged
	switch {
	case *used.MountPropagation == corev1.MountPropagationBidirectional && !isPrivileged:
		return fmt.Errorf("container %s asks for mountPropagation Bidirectional, which is for privileged containers only: use HostToContainer", user.Name)
	case used.SubPath != "" || used.SubPathExpr != "":
		return fmt.Errorf("mountPropagation %s of a part of a hostPath, which container %s asks for, is %w: "+
			"name the whole path in a hostPath of its own instead of subPath", *used.MountPropagation, user.Name, volumes.ErrNotSupported)
	default:
		return nil
	}
}

// explainPropagation adds to an error what to do where mounts can't propagate.
func explainPropagation(err error, agentDir string) error {
	switch {
	case errors.Is(err, mount.ErrNotShared):
		return fmt.Errorf("the pod asks for mountPropagation: %w: share its mounts on the node (mount --make-rshared PATH), or use mountPropagation None", err)
	case errors.Is(err, mount.ErrShows):
		return fmt.Errorf("mountPropagation of a hostPath that contains %s, where all pods' volumes are mounted, is %w: "+
			"use mountPropagation None, or name directories beside it", agentDir, volumes.ErrNotSupported)
	default:
		return err
	}
}
