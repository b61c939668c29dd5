package csi_test

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
)

const (
	driverName = "disk.csi.example.com"
	zoneKey    = "topology.example.com/zone"
)

type ability = csispec.ControllerServiceCapability_RPC_Type

// driver is a CSI driver whose volumes have their names as ids. A hook changes what a method answers.
type driver struct {
	csispec.UnimplementedIdentityServer
	csispec.UnimplementedControllerServer

	mu        sync.Mutex
	name      string
	abilities []ability
	topology  bool
	grows     bool
	unready   bool
	// endless: each page of a list is followed by another.
	endless bool
	// unlisted is a volume that no list has.
	unlisted string
	// ill are the volumes that aren't well.
	ill     map[string]*csispec.VolumeHealth
	volumes map[string]*disk
	// snapshots are by id.
	snapshots map[string]*csispec.Snapshot
	// calls are the requests of methods that change something, in order.
	calls []any
	// before is called first, and may answer in place of the method; after is called once the method
	// has had its effect.
	before, after func(request any) error
	// lies changes an answer of CreateVolume.
	lies func(*csispec.Volume)
	// liesOfSnapshots changes an answer of CreateSnapshot.
	liesOfSnapshots func(*csispec.Snapshot)
	// refuses is why a volume can't be used as asked.
	refuses string
	// groups is the driver's GroupController service.
	groups *groupDriver
	// room is what GetCapacity answers.
	room *csispec.GetCapacityResponse
}

type disk struct {
	made      *csispec.Volume
	asked     *csispec.CreateVolumeRequest
	published map[string]bool
	// mutable are the attributes that it has.
	mutable map[string]string
}

func newDriver() *driver {
	return &driver{name: driverName, groups: newGroupDriver(), volumes: map[string]*disk{}, snapshots: map[string]*csispec.Snapshot{}, abilities: []ability{
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME, csispec.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csispec.ControllerServiceCapability_RPC_LIST_VOLUMES, csispec.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
		csispec.ControllerServiceCapability_RPC_MODIFY_VOLUME, csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csispec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
	}}
}

func (d *driver) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.volumes[name] != nil
}

// did returns the requests of one kind, in order.
func did[Request any](d *driver) (all []Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, call := range d.calls {
		if of, is := call.(Request); is {
			all = append(all, of)
		}
	}
	return all
}

// intercept records a call, and lets the hooks answer.
func (d *driver) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, request)
	if d.before != nil {
		if err := d.before(request); err != nil {
			return nil, err
		}
	}
	answer, err := next(ctx, request)
	if err == nil && d.after != nil {
		if err := d.after(request); err != nil {
			return nil, err
		}
	}
	return answer, err
}

func (d *driver) GetPluginInfo(context.Context, *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	return &csispec.GetPluginInfoResponse{Name: d.name, VendorVersion: "v1"}, nil
}

func (d *driver) Probe(context.Context, *csispec.ProbeRequest) (*csispec.ProbeResponse, error) {
	return &csispec.ProbeResponse{Ready: wrapperspb.Bool(!d.unready)}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csispec.GetPluginCapabilitiesRequest) (*csispec.GetPluginCapabilitiesResponse, error) {
	services := []csispec.PluginCapability_Service_Type{csispec.PluginCapability_Service_CONTROLLER_SERVICE}
	if d.topology {
		services = append(services, csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	answer := &csispec.GetPluginCapabilitiesResponse{}
	for _, service := range services {
		answer.Capabilities = append(answer.Capabilities, &csispec.PluginCapability{
			Type: &csispec.PluginCapability_Service_{Service: &csispec.PluginCapability_Service{Type: service}},
		})
	}
	if d.grows {
		answer.Capabilities = append(answer.Capabilities, &csispec.PluginCapability{
			Type: &csispec.PluginCapability_VolumeExpansion_{VolumeExpansion: &csispec.PluginCapability_VolumeExpansion{
				Type: csispec.PluginCapability_VolumeExpansion_ONLINE,
			}},
		})
	}
	return answer, nil
}

func (d *driver) ControllerGetCapabilities(
	context.Context, *csispec.ControllerGetCapabilitiesRequest,
) (*csispec.ControllerGetCapabilitiesResponse, error) {
	answer := &csispec.ControllerGetCapabilitiesResponse{}
	for _, claimed := range d.abilities {
		answer.Capabilities = append(answer.Capabilities, &csispec.ControllerServiceCapability{
			Type: &csispec.ControllerServiceCapability_Rpc{Rpc: &csispec.ControllerServiceCapability_RPC{Type: claimed}},
		})
	}
	return answer, nil
}

func (d *driver) CreateVolume(_ context.Context, request *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	if source := request.GetVolumeContentSource().GetVolume().GetVolumeId(); source != "" && d.volumes[source] == nil && d.volumes[request.GetName()] == nil {
		return nil, status.Error(codes.NotFound, "there is no such source")
	}
	if source := request.GetVolumeContentSource().GetSnapshot().GetSnapshotId(); source != "" && d.snapshots[source] == nil && d.volumes[request.GetName()] == nil {
		return nil, status.Error(codes.NotFound, "there is no such snapshot")
	}
	of := d.volumes[request.GetName()]
	if of == nil {
		made := &csispec.Volume{
			VolumeId: request.GetName(), CapacityBytes: request.GetCapacityRange().GetRequiredBytes(),
			VolumeContext: map[string]string{"array": "a"}, ContentSource: request.GetVolumeContentSource(),
		}
		if preferred := request.GetAccessibilityRequirements().GetPreferred(); len(preferred) > 0 {
			made.AccessibleTopology = preferred[:1]
		}
		of = &disk{made: made, asked: request, published: map[string]bool{}, mutable: request.GetMutableParameters()}
		d.volumes[request.GetName()] = of
	}
	if of.made.GetCapacityBytes() < request.GetCapacityRange().GetRequiredBytes() || !maps.Equal(of.asked.GetParameters(), request.GetParameters()) ||
		!maps.Equal(of.asked.GetMutableParameters(), request.GetMutableParameters()) {
		return nil, status.Error(codes.AlreadyExists, "it was made otherwise")
	}
	answer := &csispec.Volume{
		VolumeId: of.made.GetVolumeId(), CapacityBytes: of.made.GetCapacityBytes(), VolumeContext: of.made.GetVolumeContext(),
		ContentSource: of.made.GetContentSource(), AccessibleTopology: of.made.GetAccessibleTopology(),
	}
	if d.lies != nil {
		d.lies(answer)
	}
	return &csispec.CreateVolumeResponse{Volume: answer}, nil
}

func (d *driver) DeleteVolume(_ context.Context, request *csispec.DeleteVolumeRequest) (*csispec.DeleteVolumeResponse, error) {
	if of := d.volumes[request.GetVolumeId()]; of != nil && len(of.published) > 0 {
		return nil, status.Error(codes.FailedPrecondition, "it is used")
	}
	delete(d.volumes, request.GetVolumeId())
	return &csispec.DeleteVolumeResponse{}, nil
}

func (d *driver) ControllerPublishVolume(
	_ context.Context, request *csispec.ControllerPublishVolumeRequest,
) (*csispec.ControllerPublishVolumeResponse, error) {
	of := d.volumes[request.GetVolumeId()]
	if of == nil {
		return nil, status.Error(codes.NotFound, "there is no such volume")
	}
	for node, readOnly := range of.published {
		switch {
		case node == request.GetNodeId() && readOnly != request.GetReadonly():
			return nil, status.Error(codes.AlreadyExists, "the node has it in another way")
		case node != request.GetNodeId() && (!readOnly || !request.GetReadonly()):
			return nil, status.Error(codes.FailedPrecondition, "another node has it")
		}
	}
	of.published[request.GetNodeId()] = request.GetReadonly()
	return &csispec.ControllerPublishVolumeResponse{PublishContext: map[string]string{
		backend.DeviceMetadata: "/dev/" + request.GetVolumeId(), backend.SerialMetadata: "1", backend.InstanceMetadata: request.GetNodeId(),
	}}, nil
}

func (d *driver) ControllerUnpublishVolume(
	_ context.Context, request *csispec.ControllerUnpublishVolumeRequest,
) (*csispec.ControllerUnpublishVolumeResponse, error) {
	if of := d.volumes[request.GetVolumeId()]; of != nil {
		delete(of.published, request.GetNodeId())
	}
	return &csispec.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ControllerExpandVolume(
	_ context.Context, request *csispec.ControllerExpandVolumeRequest,
) (*csispec.ControllerExpandVolumeResponse, error) {
	of := d.volumes[request.GetVolumeId()]
	if of == nil {
		return nil, status.Error(codes.NotFound, "there is no such volume")
	}
	of.made.CapacityBytes = max(of.made.GetCapacityBytes(), request.GetCapacityRange().GetRequiredBytes())
	return &csispec.ControllerExpandVolumeResponse{CapacityBytes: of.made.GetCapacityBytes(), NodeExpansionRequired: true}, nil
}

func (d *driver) GetCapacity(context.Context, *csispec.GetCapacityRequest) (*csispec.GetCapacityResponse, error) {
	return d.room, nil
}

// ListVolumes lists one volume on each page.
func (d *driver) ListVolumes(_ context.Context, request *csispec.ListVolumesRequest) (*csispec.ListVolumesResponse, error) {
	ids := slices.Sorted(maps.Keys(d.volumes))
	at, _ := slices.BinarySearch(ids, request.GetStartingToken())
	if d.endless {
		return &csispec.ListVolumesResponse{NextToken: "more"}, nil
	}
	if at >= len(ids) {
		return &csispec.ListVolumesResponse{}, nil
	}
	of, answer := d.volumes[ids[at]], &csispec.ListVolumesResponse{}
	answer.Entries = []*csispec.ListVolumesResponse_Entry{{
		Volume: &csispec.Volume{VolumeId: ids[at]},
		Status: &csispec.ListVolumesResponse_VolumeStatus{PublishedNodeIds: slices.Sorted(maps.Keys(of.published))},
	}}
	if ids[at] == d.unlisted {
		answer.Entries = nil
	}
	if at+1 < len(ids) {
		answer.NextToken = ids[at+1]
	}
	return answer, nil
}

// cluster is what the backend reads.
type cluster struct {
	secrets  map[string]map[string][]byte
	nodes    []corev1.Node
	csiNodes []storagev1.CSINode
}

func (c *cluster) Secret(_ context.Context, name string) (map[string][]byte, error) {
	if data, has := c.secrets[name]; has {
		return data, nil
	}
	return nil, backend.Unavailable.Errorf("there is no Secret %s", name)
}

func (c *cluster) Nodes(context.Context) ([]corev1.Node, error)          { return c.nodes, nil }
func (c *cluster) CSINodes(context.Context) ([]storagev1.CSINode, error) { return c.csiNodes, nil }

// add adds a node of a zone, on which the driver is registered.
func (c *cluster) add(name, zone string) *corev1.Node {
	c.nodes = append(c.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zoneKey: zone}}})
	c.csiNodes = append(c.csiNodes, storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driverName, NodeID: "id-" + name, TopologyKeys: []string{zoneKey}}}},
	})
	return &c.nodes[len(c.nodes)-1]
}

// world is a driver that serves, and the backend of its StorageBackend.
type world struct {
	*driver
	backend.Backend
	*cluster
	kind    *csi.Kind
	object  *stowagev1alpha1.StorageBackend
	server  *grpc.Server
	metrics *prometheus.Registry
	log     *lines
}

// lines are those of a log for developers.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func (l *lines) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// newWorld starts a driver behind a socket.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") //nolint:usetesting // t.TempDir has the test's name in it, and is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	w := &world{driver: newDriver(), cluster: &cluster{secrets: map[string]map[string][]byte{}}, metrics: prometheus.NewRegistry(), log: &lines{}}
	t.Cleanup(func() {
		w.server.Stop()
		_ = os.RemoveAll(dir)
	})
	w.object = &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: driverName}}
	w.object.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: driverName, Endpoint: "unix://" + filepath.Join(dir, "csi.sock")}
	calls, err := measured.New(w.metrics, funcr.New(w.log.add, funcr.Options{Verbosity: 1}))
	if err != nil {
		t.Fatal(err)
	}
	w.kind = csi.NewKind(w.cluster, calls)
	w.start(t)
	w.open(t)
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	path := w.object.Spec.CSI.Endpoint[len("unix://"):]
	_ = os.Remove(path)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	w.serve(listener)
}

func (w *world) serve(listener net.Listener, options ...grpc.ServerOption) {
	w.server = grpc.NewServer(append(options, grpc.UnaryInterceptor(w.intercept))...)
	csispec.RegisterIdentityServer(w.server, w.driver)
	csispec.RegisterControllerServer(w.server, w.driver)
	csispec.RegisterGroupControllerServer(w.server, w.groups)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(w.server)
}

// open opens the backend again, after its object changed.
func (w *world) open(t *testing.T) {
	t.Helper()
	var err error
	if w.Backend, err = w.kind.Open(w.object); err != nil {
		t.Fatal(err)
	}
}
