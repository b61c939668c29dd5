package csicontroller_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/csicontroller"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const mebibyte = 1 << 20

// world is a StorageBackend in memory that is served by a socket, in a cluster of two nodes.
type world struct {
	csispec.ControllerClient
	csispec.IdentityClient
	storage *fake.Backend
	cluster client.Client
	// cached is what a stale cache has, if anything.
	cached []corev1.PersistentVolume
}

func serve(t *testing.T) *world {
	t.Helper()
	return serveAs(t, func(storage *fake.Backend) backend.Backend { return storage })
}

// serveAs serves the storage behind another backend.
func serveAs(t *testing.T, as func(*fake.Backend) backend.Backend, snapshotterOf ...string) *world {
	t.Helper()
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{storage: fake.New()}
	w.cluster = fakeclient.NewClientBuilder().WithScheme(scheme).WithObjects(disks(), machine("node-1"), machine("node-2")).Build()
	service := csicontroller.New(csicontroller.Options{
		Name: "disks", Cluster: "cluster", Live: w.cluster, VolumesOf: w.volumesOf, CSISnapshotter: snapshotterOf, Version: "test",
		Backends: backend.NewRegistry(kind{as(w.storage)}),
	})
	socket := filepath.Join(folder(t), "csi.sock")
	start(t, service, socket)
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	w.ControllerClient, w.IdentityClient = csispec.NewControllerClient(connection), csispec.NewIdentityClient(connection)
	return w
}

func machine(name string) *corev1.Node {
	node := fixture.Node(name)
	node.Spec.ProviderID = "fake:///" + name
	return node
}

// folder is one for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") //nolint:usetesting // t.TempDir has the test's name in it, and is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// kind opens one backend.
type kind struct{ backend.Backend }

func (kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.GCEType }

func (k kind) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return k.Backend, nil }

// rounding makes volumes of two MiB at least.
type rounding struct{ *fake.Backend }

func (r rounding) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if request.Capacity.Value() < 2*mebibyte {
		request.Capacity = *resource.NewQuantity(2*mebibyte, resource.BinarySI)
	}
	return r.Backend.Provision(ctx, request)
}

// start serves until the test ends.
func start(t *testing.T, service *csicontroller.Service, socket string) {
	t.Helper()
	server, err := csicontroller.NewServer(service, socket, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// volumesOf lists the PersistentVolumes with a handle.
func (w *world) volumesOf(ctx context.Context, driver, handle string) ([]corev1.PersistentVolume, error) {
	if w.cached != nil {
		return w.cached, nil
	}
	all := &corev1.PersistentVolumeList{}
	err := w.cluster.List(ctx, all)
	return slices.DeleteFunc(all.Items, func(pv corev1.PersistentVolume) bool {
		return pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver || pv.Spec.CSI.VolumeHandle != handle
	}), err
}

func disks() *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = nil
		object.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: "demo", Zones: []string{"zone-a"}}
	})
}

func asking(name string, bytes int64) *csispec.CreateVolumeRequest {
	return &csispec.CreateVolumeRequest{
		Name: name, CapacityRange: &csispec.CapacityRange{RequiredBytes: bytes, LimitBytes: bytes},
		VolumeCapabilities: []*csispec.VolumeCapability{writer()}, Parameters: map[string]string{stowagev1alpha1.BackendParameter: "disks"},
	}
}

func writer() *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// copying asks for a copy of a volume, or of a snapshot.
func copying(name, volume, snapshot string) *csispec.CreateVolumeRequest {
	req := asking(name, mebibyte)
	req.VolumeContentSource = &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: volume},
	}}
	if snapshot != "" {
		req.VolumeContentSource.Type = &csispec.VolumeContentSource_Snapshot{
			Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: snapshot},
		}
	}
	return req
}

// made makes a volume and returns its id.
func (w *world) made(t *testing.T, req *csispec.CreateVolumeRequest) string {
	t.Helper()
	response, err := w.CreateVolume(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return response.GetVolume().GetVolumeId()
}

// snapshot makes a snapshot and returns its id.
func (w *world) snapshot(t *testing.T, name, volume string) string {
	t.Helper()
	response, err := w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
	if err != nil {
		t.Fatal(err)
	}
	return response.GetSnapshot().GetSnapshotId()
}

func (w *world) delete(ctx context.Context, id string) error {
	_, err := w.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: id})
	return err
}

// refer makes a PersistentVolume of a volume, and forget removes it.
func (w *world) refer(t *testing.T, id string) {
	t.Helper()
	if err := w.cluster.Create(t.Context(), volumeObject(id)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) forget(t *testing.T, id string) {
	t.Helper()
	if err := w.cluster.Delete(t.Context(), volumeObject(id)); err != nil {
		t.Fatal(err)
	}
}

func volumeObject(id string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	pv.Name = "by-hand"
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.GCEDriver, VolumeHandle: id}
	return pv
}

func mustBe(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
