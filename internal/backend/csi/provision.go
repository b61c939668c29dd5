package csi

import (
	"cmp"
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/answer"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/segments"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
)

const (
	// maxHandle bounds the id that a driver gives a volume, in bytes.
	maxHandle = answer.MaxHandle
	// maxContext bounds the volume_context, in bytes of keys and values. It goes into the volume object,
	// and to each node.
	maxContext = 64 << 10
)

// Provision makes a volume with CreateVolume. A clone of a source that is gone is Invalid: CSI has no
// call that finds a volume without making it.
func (b *csiBackend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if err := check(request); err != nil {
		return nil, err
	}
	controller, can, err := b.driver(ctx)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(b.checkMakes(can), b.checkCopies(request.Source, can)); err != nil {
		return nil, err
	}
	if request.Attributes != nil {
		if err := b.checkModifies(can); err != nil {
			return nil, backend.Invalid.Errorf("%w: create the claim without volumeAttributesClassName", err)
		}
	}
	creation, err := b.creation(ctx, request, can)
	if err != nil {
		return nil, err
	}
	answer, err := calling.Call(ctx, b.spec.driver, controller.CreateVolume, creation)
	if err != nil {
		refused := b.spec.driver.ErrorOf("CreateVolume", err, missingSource)
		if wire.SaysThereIsNone(err, request.Source) {
			refused = backend.Refused(refused)
		}
		return nil, refused
	}
	if err := checkMade(creation, answer.GetVolume()); err != nil {
		return nil, b.discard(ctx, controller, answer.GetVolume().GetVolumeId(), err)
	}
	return b.volume(request, answer.GetVolume())
}

// checkCopies returns an error where the driver can't fill a volume from a source.
func (b *csiBackend) checkCopies(source *backend.Source, can abilities) error {
	switch {
	case source == nil:
		return nil
	case source.Snapshot != "" && !can.has(csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT):
		return backend.Invalid.Errorf("driver %s can't restore a snapshot: create the claim without dataSource", b.spec.Driver)
	case source.Snapshot == "" && !can.has(csispec.ControllerServiceCapability_RPC_CLONE_VOLUME):
		return backend.Invalid.Errorf("driver %s can't copy a volume: create the claim without dataSource, and copy the data", b.spec.Driver)
	}
	return nil
}

// check refuses a request that must not reach a driver.
func check(request backend.Request) error {
	switch {
	case !backend.IsVolumeID(request.ID, request.Claim.UID):
		return backend.Conflict.Errorf("the id %q isn't that of a volume of the claim with uid %s", request.ID, request.Claim.UID)
	case request.Capacity.Sign() <= 0:
		return backend.Invalid.Errorf("the claim asks for %s: ask for more than nothing", request.Capacity.String())
	case request.Source != nil && request.Source.IsUnknown():
		return backend.Invalid.Errorf("the source of the copy is gone: create the claim again, from another")
	}
	return nil
}

// checkMade checks an answer of CreateVolume.
func checkMade(asked *csispec.CreateVolumeRequest, made *csispec.Volume) error {
	source, wanted := made.GetContentSource().GetVolume().GetVolumeId(), asked.GetVolumeContentSource().GetVolume().GetVolumeId()
	restored, snapshot := made.GetContentSource().GetSnapshot().GetSnapshotId(), asked.GetVolumeContentSource().GetSnapshot().GetSnapshotId()
	switch {
	case made.GetVolumeId() == "":
		return backend.Invalid.Errorf("without a volume_id")
	case len(made.GetVolumeId()) > maxHandle:
		return backend.Invalid.Errorf("with a volume_id of %d bytes, more than %d", len(made.GetVolumeId()), maxHandle)
	case wire.Size(made.GetVolumeContext()) > maxContext:
		return backend.Invalid.Errorf("with a volume_context of %d bytes, more than %d", wire.Size(made.GetVolumeContext()), maxContext)
	case made.GetCapacityBytes() < 0 || made.GetCapacityBytes() > 0 && made.GetCapacityBytes() < asked.GetCapacityRange().GetRequiredBytes():
		return backend.Invalid.Errorf("with %d bytes, fewer than the %d that were requested", made.GetCapacityBytes(), asked.GetCapacityRange().GetRequiredBytes())
	case source != wanted:
		return backend.Invalid.Errorf("with a copy of %.200q, and not of %.200q", source, wanted)
	case restored != snapshot:
		return backend.Invalid.Errorf("with the content of snapshot %.200q, and not of %.200q", restored, snapshot)
	}
	return segments.Check(made.GetAccessibleTopology())
}

// discard removes a volume that can't be used. What the driver answered is Invalid then. Until it is
// removed, the outcome is unknown: a repeat of the call finds the volume again.
func (b *csiBackend) discard(ctx context.Context, controller csispec.ControllerClient, handle string, unusable error) error {
	if handle == "" || len(handle) > maxHandle {
		// There is no id to delete it by: a repeat may have a better answer.
		return backend.InProgress.Errorf("driver %s answers CreateVolume %w: its log may say why; the call is repeated", b.spec.Driver, unusable)
	}
	if err := b.remove(ctx, controller, handle); err != nil {
		return backend.InProgress.Errorf("driver %s answers CreateVolume %w, and the volume is yet to be removed: %w", b.spec.Driver, unusable, err)
	}
	return backend.Refused(backend.Invalid.Errorf("driver %s answers CreateVolume %w: the volume was removed", b.spec.Driver, unusable))
}

// volume is what goes into the PersistentVolume.
func (b *csiBackend) volume(request backend.Request, made *csispec.Volume) (*backend.Volume, error) {
	volume := &backend.Volume{
		Handle:       made.GetVolumeId(),
		Attributes:   made.GetVolumeContext(),
		Capacity:     *resource.NewQuantity(cmp.Or(made.GetCapacityBytes(), request.Capacity.Value()), resource.BinarySI),
		NodeAffinity: segments.Affinity(made.GetAccessibleTopology()),
	}
	if request.VolumeMode != corev1.PersistentVolumeBlock {
		volume.FSType = b.spec.fsType(request)
	}
	return volume, nil
}
