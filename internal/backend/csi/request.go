package csi

import (
	"context"
	"maps"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
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
		creation.VolumeContentSource = wire.ContentSource(*request.Source)
	}
	if can.topology {
		creation.AccessibilityRequirements, err = b.topologies(ctx, request)
	}
	return creation, err
}

// capabilities are one for each access mode of a claim.
func capabilities(request backend.Request, fsType string, can abilities) []*csispec.VolumeCapability {
	var all []*csispec.VolumeCapability
	for _, mode := range request.AccessModes {
		all = append(all, wire.Capability(accessMode(mode, can), request.VolumeMode, fsType, request.MountOptions))
	}
	return all
}

func accessMode(mode corev1.PersistentVolumeAccessMode, can abilities) csispec.VolumeCapability_AccessMode_Mode {
	return wire.AccessMode(mode, can.distinguishes())
}
