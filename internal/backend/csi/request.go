package csi

import (
	"context"
	"maps"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// fsType is the file system of a volume; empty for a device, and where the driver chooses.
func (s settings) fsType(request backend.Request) string {
	switch {
	case request.VolumeMode == corev1.PersistentVolumeBlock:
		return ""
	case request.FSType != "":
		return request.FSType
	default:
		return s.FSType
	}
}

// parameters are those of the class. Those of the spec prevail.
func (s settings) parameters(request backend.Request) map[string]string {
	all := maps.Clone(request.Parameters)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range s.Parameters {
		all[key] = string(value)
	}
	return all
}

// creation is the request of CreateVolume. The same request has the same creation, but for the order
// of topologies, as nodes come and go.
func (b *csiBackend) creation(ctx context.Context, request backend.Request, can abilities) (*csispec.CreateVolumeRequest, error) {
	secrets, err := b.secret(ctx, b.spec.Secrets.Provision)
	if err != nil {
		return nil, err
	}
	creation := &csispec.CreateVolumeRequest{
		Name:               request.ID,
		CapacityRange:      &csispec.CapacityRange{RequiredBytes: request.Capacity.Value()},
		VolumeCapabilities: capabilities(request, b.spec.fsType(request), can),
		Parameters:         b.spec.parameters(request),
		Secrets:            secrets,
	}
	if request.Attributes != nil {
		creation.MutableParameters = request.Attributes.Parameters
	}
	if request.Source != nil {
		creation.VolumeContentSource = contentSource(*request.Source)
	}
	if can.topology {
		creation.AccessibilityRequirements, err = b.topologies(ctx, request)
	}
	return creation, err
}

// contentSource is what a volume is filled from.
func contentSource(source backend.Source) *csispec.VolumeContentSource {
	if source.Snapshot != "" {
		return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
			Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: source.Snapshot},
		}}
	}
	return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: source.ID},
	}}
}

// capabilities are one for each access mode of a claim.
func capabilities(request backend.Request, fsType string, can abilities) []*csispec.VolumeCapability {
	var all []*csispec.VolumeCapability
	for _, mode := range request.AccessModes {
		all = append(all, capability(accessMode(mode, can), request.VolumeMode, fsType, request.MountOptions))
	}
	return all
}

func capability(
	mode csispec.VolumeCapability_AccessMode_Mode, volumeMode corev1.PersistentVolumeMode, fsType string, options []string,
) *csispec.VolumeCapability {
	made := &csispec.VolumeCapability{AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode}}
	if volumeMode == corev1.PersistentVolumeBlock {
		made.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
		return made
	}
	made.AccessType = &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{FsType: fsType, MountFlags: options}}
	return made
}

// accessMode is CSI's name of an access mode. A driver that doesn't distinguish the writers of one
// node has one name for both of their modes.
func accessMode(mode corev1.PersistentVolumeAccessMode, can abilities) csispec.VolumeCapability_AccessMode_Mode {
	distinguishes := can.has(csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	switch {
	case mode == corev1.ReadWriteMany:
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case mode == corev1.ReadOnlyMany:
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case mode == corev1.ReadWriteOncePod && distinguishes:
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case distinguishes:
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	default:
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	}
}
