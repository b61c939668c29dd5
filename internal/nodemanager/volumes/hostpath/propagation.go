package hostpath

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// propagationOf is on which side of a directory shows what is mounted later on the other:
// as far as the container goes that asks for most. The container runtime keeps it from
// those that ask for less.
func propagationOf(spec volumes.Spec) (mount.Propagation, error) {
	most := mount.Private
	if spec.Pod == nil {
		return most, nil
	}
	for _, user := range container.All(spec.Pod) {
		for _, seen := range user.VolumeMounts {
			asked := askedBy(seen)
			if seen.Name != spec.Volume.Name || asked == mount.Private {
				continue
			}
			if err := checkPropagation(user, seen); err != nil {
				return mount.Private, err
			}
			most = max(most, asked)
		}
	}
	return most, nil
}

func askedBy(seen corev1.VolumeMount) mount.Propagation {
	if seen.MountPropagation == nil {
		return mount.Private
	}
	switch *seen.MountPropagation {
	case corev1.MountPropagationHostToContainer:
		return mount.Slave
	case corev1.MountPropagationBidirectional:
		return mount.Shared
	default:
		return mount.Private
	}
}

func checkPropagation(user corev1.Container, seen corev1.VolumeMount) error {
	isPrivileged := user.SecurityContext != nil && user.SecurityContext.Privileged != nil && *user.SecurityContext.Privileged
	switch {
	case *seen.MountPropagation == corev1.MountPropagationBidirectional && !isPrivileged:
		return fmt.Errorf("container %s asks for mountPropagation Bidirectional, which is for privileged containers only: use HostToContainer", user.Name)
	case seen.SubPath != "" || seen.SubPathExpr != "":
		return fmt.Errorf("mountPropagation %s of a part of a hostPath, which container %s asks for, is %w: "+
			"name the whole path in a hostPath of its own instead of subPath", *seen.MountPropagation, user.Name, volumes.ErrNotSupported)
	default:
		return nil
	}
}

// explainPropagation says what to do where mounts can't be told of on the other side.
func explainPropagation(err error, agentDir string) error {
	switch {
	case errors.Is(err, mount.ErrNotShared):
		return fmt.Errorf("the pod asks for mountPropagation: %w: share its mounts on the node (mount --make-rshared PATH), or use mountPropagation None", err)
	case errors.Is(err, mount.ErrShows):
		return fmt.Errorf("mountPropagation of a hostPath that shows %s, where all pods' volumes are mounted, is %w: "+
			"use mountPropagation None, or name directories beside it", agentDir, volumes.ErrNotSupported)
	default:
		return err
	}
}
