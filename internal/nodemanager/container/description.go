package container

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// bindType is the type of a bind mount.
const bindType = "bind"

// Description is what a container runtime needs to give a container its volumes. Mounts and
// additionalGids are those of the OCI runtime specification.
type Description struct {
	// Mounts are in the order in which they are to be made.
	Mounts []specs.Mount `json:"mounts"`
	// Devices are the container's block volumes.
	Devices []Device `json:"devices"`
	// AdditionalGids are supplemental groups of the container's processes.
	AdditionalGids []uint32 `json:"additionalGids"`
}

// Device is an entry of linux.devices in the OCI runtime specification, with what that has
// elsewhere.
type Device struct {
	specs.LinuxDevice
	// Source is the path of the device on the node.
	Source string `json:"source"`
	// Access is what the container may do with it, for linux.resources.devices.
	Access string `json:"access"`
}

// Pod is what the containers of a pod have in common.
type Pod struct {
	// Volumes are by the names that the pod has for them.
	Volumes map[string]Volume
	// Groups are supplemental groups of its processes.
	Groups []int64
}

// Volume is where a volume is on the node.
type Volume struct {
	// Path is its directory or device.
	Path string
	// Access is what the pod may do with it.
	Access mount.Access
	// Part returns the path of the part for a container's volumeMount of this index.
	Part func(container string, index int) string
	// Device is its device numbers, if it is a block volume.
	Device Numbers
}

// Describe describes one container of a pod. A volume that the pod hasn't is an error.
func (p Pod) Describe(container corev1.Container) (Description, error) {
	description := Description{Mounts: []specs.Mount{}, Devices: []Device{}, AdditionalGids: []uint32{}}
	for i, wanted := range container.VolumeMounts {
		volume, err := p.volume(container, wanted.Name)
		if err != nil {
			return Description{}, err
		}
		description.Mounts = append(description.Mounts, mountOf(container, i, volume))
	}
	// A mount inside another one comes after it.
	slices.SortStableFunc(description.Mounts, func(a, b specs.Mount) int { return depth(a.Destination) - depth(b.Destination) })
	for _, wanted := range container.VolumeDevices {
		volume, err := p.volume(container, wanted.Name)
		if err != nil {
			return Description{}, err
		}
		description.Devices = append(description.Devices, deviceOf(wanted, volume))
	}
	for _, group := range p.Groups {
		if group >= 0 && group <= math.MaxUint32 {
			description.AdditionalGids = append(description.AdditionalGids, uint32(group))
		}
	}
	return description, nil
}

func (p Pod) volume(container corev1.Container, name string) (Volume, error) {
	volume, known := p.Volumes[name]
	if !known {
		return Volume{}, fmt.Errorf("container %s names volume %s, which the pod hasn't: create the pod again", container.Name, name)
	}
	return volume, nil
}

func mountOf(container corev1.Container, index int, volume Volume) specs.Mount {
	wanted := container.VolumeMounts[index]
	source := volume.Path
	if wanted.SubPath != "" || wanted.SubPathExpr != "" {
		source = volume.Part(container.Name, index)
	}
	return specs.Mount{
		Destination: filepath.Clean("/" + wanted.MountPath),
		Type:        bindType,
		Source:      source,
		Options:     append([]string{"rbind", propagation(wanted)}, access(wanted, volume)...),
	}
}

// propagation is the mount option for whether later mounts appear on the other side.
func propagation(wanted corev1.VolumeMount) string {
	if wanted.MountPropagation == nil {
		return "rprivate"
	}
	switch *wanted.MountPropagation {
	case corev1.MountPropagationHostToContainer:
		return "rslave"
	case corev1.MountPropagationBidirectional:
		return "rshared"
	default:
		return "rprivate"
	}
}

// access is the mount options for what the container may do. The kernels that the agent runs on
// support rro.
func access(wanted corev1.VolumeMount, volume Volume) []string {
	recursive := wanted.RecursiveReadOnly
	switch {
	case wanted.ReadOnly && recursive != nil && *recursive != corev1.RecursiveReadOnlyDisabled:
		return []string{"ro", "rro"}
	case wanted.ReadOnly || volume.Access == mount.ReadOnly:
		return []string{"ro"}
	default:
		// Not rw: runtimes take that for an order to lift what the volume's own mount forbids.
		return nil
	}
}

func deviceOf(wanted corev1.VolumeDevice, volume Volume) Device {
	device := Device{
		LinuxDevice: specs.LinuxDevice{Path: filepath.Clean("/" + wanted.DevicePath), Type: "b", Major: volume.Device.Major, Minor: volume.Device.Minor},
		Source:      volume.Path,
		Access:      "rwm",
	}
	if volume.Access == mount.ReadOnly {
		device.Access = "r"
	}
	return device
}

// depth counts the parts of a path.
func depth(path string) int { return strings.Count(strings.TrimSuffix(path, "/"), "/") }
