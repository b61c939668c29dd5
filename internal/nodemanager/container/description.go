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

// bindType is the type of a mount that shows what is there already.
const bindType = "bind"

// Description is what a container runtime has to know to show a container its volumes.
// Mounts are as the OCI runtime specification has them, and so are additionalGids.
type Description struct {
	// Mounts are in the order in which they are to be made.
	Mounts []specs.Mount `json:"mounts"`
	// Devices are the volumes that the container sees as devices.
	Devices []Device `json:"devices"`
	// AdditionalGids are groups that the container's processes are to have.
	AdditionalGids []uint32 `json:"additionalGids"`
}

// Device is an entry of linux.devices in the OCI runtime specification, with what that
// says elsewhere.
type Device struct {
	specs.LinuxDevice
	// Source is the path of the device on the node.
	Source string `json:"source"`
	// Access is what the container may do with it, for linux.resources.devices.
	Access string `json:"access"`
}

// Pod is what its containers have in common.
type Pod struct {
	// Volumes is where they are, by the names that the pod has for them.
	Volumes map[string]Place
	// Groups are those that its processes are to have besides their own.
	Groups []int64
}

// Place is where a volume is on the node.
type Place struct {
	// Path is where it is visible.
	Path string
	// Access is what the pod may do with it.
	Access mount.Access
	// Part is where a part of it is visible that a container's volumeMount of this index
	// asks for.
	Part func(container string, index int) string
	// Device is its numbers, if it is one.
	Device Numbers
}

// Describe describes one container of a pod. A volume that the pod hasn't is an error.
func (p Pod) Describe(container corev1.Container) (Description, error) {
	description := Description{Mounts: []specs.Mount{}, Devices: []Device{}, AdditionalGids: []uint32{}}
	for i, wanted := range container.VolumeMounts {
		place, err := p.place(container, wanted.Name)
		if err != nil {
			return Description{}, err
		}
		description.Mounts = append(description.Mounts, mountOf(container, i, place))
	}
	// What lies in another mount comes after it.
	slices.SortStableFunc(description.Mounts, func(a, b specs.Mount) int { return depth(a.Destination) - depth(b.Destination) })
	for _, wanted := range container.VolumeDevices {
		place, err := p.place(container, wanted.Name)
		if err != nil {
			return Description{}, err
		}
		description.Devices = append(description.Devices, deviceOf(wanted, place))
	}
	for _, group := range p.Groups {
		if group >= 0 && group <= math.MaxUint32 {
			description.AdditionalGids = append(description.AdditionalGids, uint32(group))
		}
	}
	return description, nil
}

func (p Pod) place(container corev1.Container, volume string) (Place, error) {
	place, known := p.Volumes[volume]
	if !known {
		return Place{}, fmt.Errorf("container %s names volume %s, which the pod hasn't: create the pod anew", container.Name, volume)
	}
	return place, nil
}

// mountOf is one volumeMount of a container.
func mountOf(container corev1.Container, index int, place Place) specs.Mount {
	wanted := container.VolumeMounts[index]
	source := place.Path
	if wanted.SubPath != "" || wanted.SubPathExpr != "" {
		source = place.Part(container.Name, index)
	}
	return specs.Mount{
		Destination: filepath.Clean("/" + wanted.MountPath),
		Type:        bindType,
		Source:      source,
		Options:     append([]string{"rbind", propagation(wanted)}, access(wanted, place)...),
	}
}

// propagation is whether mounts that are made later show up on the other side.
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

// access is what the container may do. The kernels that the agent runs on can make all
// mounts below read-only, too.
func access(wanted corev1.VolumeMount, place Place) []string {
	recursive := wanted.RecursiveReadOnly
	switch {
	case wanted.ReadOnly && recursive != nil && *recursive != corev1.RecursiveReadOnlyDisabled:
		return []string{"ro", "rro"}
	case wanted.ReadOnly || place.Access == mount.ReadOnly:
		return []string{"ro"}
	default:
		// Not rw: runtimes take that for an order to lift what the volume's own mount forbids.
		return nil
	}
}

func deviceOf(wanted corev1.VolumeDevice, place Place) Device {
	device := Device{
		LinuxDevice: specs.LinuxDevice{Path: filepath.Clean("/" + wanted.DevicePath), Type: "b", Major: place.Device.Major, Minor: place.Device.Minor},
		Source:      place.Path,
		Access:      "rwm",
	}
	if place.Access == mount.ReadOnly {
		device.Access = "r"
	}
	return device
}

// depth counts the parts of a path.
func depth(path string) int { return strings.Count(strings.TrimSuffix(path, "/"), "/") }
