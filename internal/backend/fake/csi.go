package fake

import (
	"context"
	"errors"
	"reflect"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// CSI is a CSI driver in memory: a Kind and its one Backend. Its volumes have handles that don't
// follow from their ids, so only the answer of a call, or its repeat, says what the call made. It
// lists no owners.
type CSI struct {
	of *Backend
	// undone are the requests of Undo, attaches those of Attach, and modified those of Modify, in order.
	undone   []backend.Request
	attaches []backend.AttachRequest
	modified []backend.Attributes
	// lists: it lists the nodes of its volumes; lists counts how often it did.
	lists  bool
	listed int
	// inspection is what SetInspection set.
	inspection backend.Inspection
	// half is what Modify, and calls that make or delete snapshots, fail with after they have had their effect.
	half []error
	// topologies and room are what SetCapacity set.
	topologies []map[string]string
	room       func(backend.CapacityRequest) (backend.ClassCapacity, error)
	// places are what SetPlaces set.
	places []map[string]string
	// groups are the group snapshots, by handle.
	groups map[string]backend.GroupSnapshotRequest
}

var (
	_ backend.Kind     = (*CSI)(nil)
	_ backend.Undoer   = (*CSI)(nil)
	_ backend.Attacher = (*CSI)(nil)
	_ backend.Expander = (*CSI)(nil)
	_ backend.Modifier = (*CSI)(nil)
	_ backend.Placer   = (*CSI)(nil)

	_ backend.TopologyReporter      = (*CSI)(nil)
	_ backend.ClassCapacityReporter = (*CSI)(nil)
	_ backend.PublicationLister     = (*CSI)(nil)
	_ backend.Inspector             = (*CSI)(nil)
)

// handlePrefix begins each handle. Those of Google's driver look like it, and like paths of disks that Stowage did not make.
const handlePrefix = "projects/demo/zones/a/disks/"

// NewCSI makes a driver that keeps its volumes in a backend, by their ids.
func NewCSI(of *Backend) *CSI {
	return &CSI{of: of, groups: map[string]backend.GroupSnapshotRequest{}}
}

// Type is CSI.
func (*CSI) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.CSIType }

// Open returns the one backend.
func (d *CSI) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return d, nil }

// Capabilities are all that there are.
func (d *CSI) Capabilities() backend.Capabilities { return d.of.Capabilities() }

// Probe returns what SetProbe set.
func (d *CSI) Probe(ctx context.Context) error { return d.of.Probe(ctx) }

// SetPlaces makes the driver know these places from now on. It makes a volume in one set of places only.
func (d *CSI) SetPlaces(places ...map[string]string) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.places = places
}

// Place returns the places of SetPlaces.
func (d *CSI) Place(context.Context, backend.Request) (*backend.Placement, error) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if d.places == nil {
		return nil, nil //nolint:nilnil // there is nothing to choose
	}
	return &backend.Placement{Requisite: d.places}, nil
}

// Provision keeps the request, and returns a handle. To find a volume again it needs the places and the
// snapshot of the first call.
func (d *CSI) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	d.of.mu.Lock()
	kept, exists := d.of.volumes[request.ID]
	d.of.mu.Unlock()
	if exists && !reflect.DeepEqual(kept.Placement, request.Placement) {
		return nil, backend.Conflict.Errorf("volume %s was made elsewhere", request.ID)
	}
	if exists && snapshotIn(kept) != snapshotIn(request) {
		return nil, backend.Conflict.Errorf("volume %s was made from another source", request.ID)
	}
	made, err := d.of.Provision(ctx, request)
	if err != nil {
		return nil, err
	}
	made.Handle = handlePrefix + made.Handle
	made.Attributes = map[string]string{"instance": "the driver's own"}
	return made, nil
}

// Delete removes the volume with a handle.
func (d *CSI) Delete(ctx context.Context, handle string) error {
	id, err := idOf(handle)
	if err != nil {
		return err
	}
	return d.of.Delete(ctx, id)
}

// snapshotIn is the snapshot that a request restores; "" for none.
func snapshotIn(request backend.Request) string {
	if request.Source == nil {
		return ""
	}
	return request.Source.Snapshot
}

// Undo makes the volume again, and removes it. What can't be made isn't there.
func (d *CSI) Undo(ctx context.Context, request backend.Request) error {
	d.of.mu.Lock()
	d.undone = append(d.undone, request)
	d.of.mu.Unlock()
	made, err := d.Provision(ctx, request)
	switch {
	case errors.Is(err, backend.Invalid):
		return nil
	case err != nil:
		return err
	}
	return d.Delete(ctx, made.Handle)
}

// Attach attaches a volume to the node with the driver's id.
func (d *CSI) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	d.of.mu.Lock()
	d.attaches = append(d.attaches, request)
	d.of.mu.Unlock()
	id, err := idOf(request.ID)
	if err != nil {
		return backend.Attachment{}, err
	}
	request.ID, request.Node = id, onDriver(request.Node)
	if _, err := d.of.Attach(ctx, request); err != nil {
		return backend.Attachment{}, err
	}
	return backend.Attachment{Metadata: map[string]string{"instance": "the driver's own"}}, nil
}

// Detach detaches a volume from the node with the driver's id.
func (d *CSI) Detach(ctx context.Context, handle string, node backend.NodeIdentity) error {
	id, err := idOf(handle)
	if err != nil {
		return err
	}
	return d.of.Detach(ctx, id, onDriver(node))
}

// IsAttached reports whether the node with the driver's id has a volume.
func (d *CSI) IsAttached(ctx context.Context, handle string, node backend.NodeIdentity) (bool, error) {
	id, err := idOf(handle)
	if err != nil {
		return false, err
	}
	return d.of.IsAttached(ctx, id, onDriver(node))
}

// Lists makes Publications list nodes.
func (d *CSI) Lists() {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.lists = true
}

// Listed is how often Publications listed nodes.
func (d *CSI) Listed() int {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return d.listed
}

// Publications returns the nodes of volumes that Unlist did not hide, once Lists was called.
func (d *CSI) Publications(_ context.Context, of map[string]bool) (map[string][]string, error) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if !d.lists || d.of.listing != nil {
		return nil, d.of.listing
	}
	d.listed++
	nodes := map[string][]string{}
	for id := range d.of.volumes {
		if !of[handlePrefix+id] || d.of.unlisted[id] {
			continue
		}
		nodes[handlePrefix+id] = []string{}
		for to := range d.of.attached[id] {
			nodes[handlePrefix+id] = append(nodes[handlePrefix+id], string(to))
		}
	}
	return nodes, nil
}

// SetInspection makes Inspect return this from now on, and what is missing in the backend.
func (d *CSI) SetInspection(inspection backend.Inspection) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.inspection = inspection
}

// Inspect returns what SetInspection set, and the volumes that the backend lacks if it finds those.
func (d *CSI) Inspect(_ context.Context, ids []string) (backend.Inspection, error) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	found := d.inspection
	if found.FindsMissing {
		found.Missing = map[string]bool{}
	}
	for _, id := range ids {
		if _, there := d.of.volumes[strings.TrimPrefix(id, handlePrefix)]; !there && found.FindsMissing {
			found.Missing[id] = true
		}
	}
	return found, d.of.listing
}

// Expand sets the new capacity.
func (d *CSI) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	id, err := idOf(request.ID)
	if err != nil {
		return backend.Expansion{}, err
	}
	request.ID = id
	return d.of.Expand(ctx, request)
}

// Modify gives a volume other attributes, or fails as FailNext said, or HalfNext.
func (d *CSI) Modify(ctx context.Context, handle string, attributes backend.Attributes) error {
	id, err := idOf(handle)
	if err != nil {
		return err
	}
	if err := d.of.begin(ctx, "Modify "+id+" to "+attributes.Class); err != nil {
		return err
	}
	defer d.of.mu.Unlock()
	kept, exists := d.of.volumes[id]
	if !exists {
		return backend.NotFound.Errorf("there is no volume %s", id)
	}
	kept.Attributes = &attributes
	d.of.volumes[id], d.modified = kept, append(d.modified, attributes)
	return d.nextHalf()
}

// nextHalf returns what HalfNext said. The caller holds the lock.
func (d *CSI) nextHalf() (err error) {
	if len(d.half) > 0 {
		err, d.half = d.half[0], d.half[1:]
	}
	return err
}

// HalfNext makes the next calls of Modify, and of those that make or delete snapshots, return these errors after they had
// their effect.
func (d *CSI) HalfNext(failures ...error) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.half = append(d.half, failures...)
}

// Modified returns the attributes of all calls of Modify that had an effect, in order.
func (d *CSI) Modified() []backend.Attributes {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return append([]backend.Attributes(nil), d.modified...)
}

// SetCapacity makes the driver report room in these topologies: what the function answers. Until then
// it reports none.
func (d *CSI) SetCapacity(room func(backend.CapacityRequest) (backend.ClassCapacity, error), topologies ...map[string]string) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.topologies, d.room = topologies, room
}

// CapacityTopologies returns the topologies of SetCapacity. A driver that fails its probe doesn't answer.
func (d *CSI) CapacityTopologies(ctx context.Context) ([]map[string]string, error) {
	if err := d.of.Probe(ctx); err != nil {
		return nil, err
	}
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return d.topologies, nil
}

// CapacityOf returns the room of SetCapacity.
func (d *CSI) CapacityOf(ctx context.Context, request backend.CapacityRequest) (backend.ClassCapacity, error) {
	if err := d.of.Probe(ctx); err != nil {
		return backend.ClassCapacity{}, err
	}
	d.of.mu.Lock()
	room := d.room
	d.of.mu.Unlock()
	return room(request)
}

// Undone returns the requests of all calls of Undo, in order.
func (d *CSI) Undone() []backend.Request {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return append([]backend.Request(nil), d.undone...)
}

// Attaches returns the requests of all calls of Attach, in order.
func (d *CSI) Attaches() []backend.AttachRequest {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return append([]backend.AttachRequest(nil), d.attaches...)
}

// Request returns the request of the first call of Provision that made a volume, by its id.
func (d *CSI) Request(id string) backend.Request {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	return d.of.volumes[id]
}

// onDriver is the identity of a node by which the driver knows it: nothing else reaches a driver.
func onDriver(node backend.NodeIdentity) backend.NodeIdentity {
	return backend.NodeIdentity{Name: node.Name, ProviderID: node.DriverID}
}

func idOf(handle string) (string, error) {
	id, is := strings.CutPrefix(handle, handlePrefix)
	if !is {
		return "", backend.Invalid.Errorf("%q is no handle of the driver", handle)
	}
	return id, nil
}
