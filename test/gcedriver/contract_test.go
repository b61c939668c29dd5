package gcedriver_test

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/csi"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
)

const (
	driverName = "pd.csi.storage.gke.io"
	zoneKey    = "topology.gke.io/zone"
)

// instanceID is how the driver names a node.
func instanceID(name string) string {
	return "projects/" + project + "/zones/" + zone + "/instances/" + name
}

// nodes are the zones of those of a cluster. The driver is registered on all.
type nodes map[string]string

func (nodes) Secret(context.Context, string) (map[string][]byte, error) {
	return nil, errors.New("the driver needs no Secret")
}

func (n nodes) Nodes(context.Context) (all []corev1.Node, err error) {
	for name, zone := range n {
		all = append(all, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zoneKey: zone}}})
	}
	return all, nil
}

func (n nodes) CSINodes(context.Context) (all []storagev1.CSINode, err error) {
	for name := range n {
		all = append(all, storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: driverName, NodeID: instanceID(name), TopologyKeys: []string{zoneKey}}},
		}})
	}
	return all, nil
}

var inOneZone = nodes{node: zone, otherNode: zone}

// backend is that of the driver's StorageBackend, as reconcilers call it.
func (b *testbed) backend(t *testing.T, of nodes, diskType string) asReconcilers {
	t.Helper()
	object := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: driverName}}
	object.Spec.CSI = &stowagev1alpha1.CSIBackend{
		Driver: driverName, Endpoint: "unix://" + b.path("csi.sock"), Timeout: metav1.Duration{Duration: 30 * time.Second},
		Parameters: map[string]stowagev1alpha1.CSIParameter{"type": stowagev1alpha1.CSIParameter(diskType)},
	}
	calls, err := measured.New(prometheus.NewRegistry(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := csi.NewKind(of, calls).Open(object)
	if err != nil {
		t.Fatal(err)
	}
	return asReconcilers{opened}
}

// asReconcilers is a backend as reconcilers call it: with the driver's id of a volume, and with
// the volume object of an attachment. The suite knows volumes by the ids of their requests. CSI
// keeps no owner, so the reconciler checks which claim's volume is copied.
type asReconcilers struct{ backend.Backend }

func handleOf(id string) string {
	if strings.HasPrefix(id, "pvc-") {
		return "projects/" + project + "/zones/" + zone + "/disks/" + id
	}
	return id
}

func (b asReconcilers) Capabilities() backend.Capabilities {
	without := b.Backend.Capabilities()
	without.Clones = false
	return without
}

// scale is by what sizes of the suite are multiplied: a disk of Google's has at least 10Gi.
const scale = 10 << 10

func scaled(size resource.Quantity) resource.Quantity {
	return *resource.NewQuantity(size.Value()*scale, resource.BinarySI)
}

func unscaled(size resource.Quantity) resource.Quantity {
	return *resource.NewQuantity(size.Value()/scale, resource.BinarySI)
}

func (b asReconcilers) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	request.Capacity = scaled(request.Capacity)
	made, err := b.Backend.Provision(ctx, request)
	if err == nil {
		made.Capacity = unscaled(made.Capacity)
	}
	return made, err
}

func (b asReconcilers) Delete(ctx context.Context, id string) error {
	return b.Backend.Delete(ctx, handleOf(id))
}

// Attach adds by what the suite wants a device to be found: the driver finds it by the id of the
// volume. The driver calls a disk that another machine uses an invalid argument.
func (b asReconcilers) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	request.ID = handleOf(request.ID)
	request.Volume = &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: driverName, VolumeHandle: request.ID, FSType: "ext4",
		}},
	}}
	attached, err := b.Backend.(backend.Attacher).Attach(ctx, request)
	if errors.Is(err, backend.Invalid) && strings.Contains(err.Error(), "is already being used by") {
		return attached, backend.Conflict.Errorf("%w", err)
	}
	if err == nil {
		attached.Metadata = map[string]string{
			backend.DeviceMetadata: path.Base(request.ID), backend.SerialMetadata: path.Base(request.ID), backend.InstanceMetadata: request.Node.DriverID,
		}
	}
	return attached, err
}

func (b asReconcilers) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	return b.Backend.(backend.Attacher).Detach(ctx, handleOf(id), node)
}

func (b asReconcilers) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	return b.Backend.(backend.Attacher).IsAttached(ctx, handleOf(id), node)
}

func (b asReconcilers) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	grown, err := backend.Expand(ctx, b.Backend, backend.ExpandRequest{ID: handleOf(request.ID), Capacity: scaled(request.Capacity)})
	grown.Capacity = unscaled(grown.Capacity)
	return grown, err
}

func TestStowageKeepsTheContractWithTheDriver(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, "contract", subjects[0])
	t.Run("volumes", func(t *testing.T) {
		backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
			t.Cleanup(b.removeAll)
			return b.backend(t, inOneZone, "pd-balanced"), b.hasDisk
		})
	})
	t.Run("attachments", func(t *testing.T) {
		backendtest.AttachContract(t, func(t *testing.T) backendtest.Machines {
			t.Cleanup(b.removeAll)
			return backendtest.Machines{
				Backend: b.backend(t, inOneZone, "pd-balanced"),
				Nodes: [2]backend.NodeIdentity{
					{Name: node, DriverID: instanceID(node)}, {Name: otherNode, DriverID: instanceID(otherNode)},
				},
				Absent: backend.NodeIdentity{Name: "absent"},
			}
		})
	})
	b.leavesNothing()
}

// Names of Google's disks are unique in their zones only.
func TestAnUndoRemovesTheDiskInTheZoneOfItsNode(t *testing.T) {
	t.Parallel()
	b, in := newTestbed(t, "undo", subjects[0]), nodes{node: zone, otherNode: other}
	all, _ := in.Nodes(t.Context())
	for i := range all {
		request, opened := backendtest.Request("1"), b.backend(t, in, "pd-balanced")
		request.Node = &all[i]
		made, err := opened.Provision(t.Context(), request)
		if want := "/zones/" + in[all[i].Name] + "/"; err != nil || !strings.Contains(made.Handle, want) {
			t.Fatalf("made is %+v, not in %s: %v", made, want, err)
		}
		request.Capacity = scaled(request.Capacity)
		if err := backend.Undo(t.Context(), opened.Backend, request); err != nil {
			t.Error(err)
		}
		b.leavesNothing()
	}
}

// removeAll empties the cloud.
func (b *testbed) removeAll() {
	service := b.compute()
	for _, disk := range b.disks() {
		for _, user := range disk.Users {
			operation, err := service.Instances.DetachDisk(project, zone, path.Base(user), disk.Name).Do()
			b.ended(operation, err)
		}
		operation, err := service.Disks.Delete(project, zone, disk.Name).Do()
		b.ended(operation, err)
	}
}

// arm makes something go wrong in the cloud, until calm is called.
func (b *testbed) arm(fault string) {
	b.Helper()
	b.mock(http.MethodPost, "faults", fault)
}

func (b *testbed) calm() {
	b.Helper()
	b.mock(http.MethodDelete, "faults", "")
}

func (b *testbed) mock(method, what, body string) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), method, b.cloud+"/_mock/"+what, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	answer, err := b.client().Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b.Fatalf("%s %s: %s", method, what, answer.Status)
	}
}

// ended waits for the end of an operation in the zone.
func (b *testbed) ended(operation *compute.Operation, err error) {
	b.Helper()
	for err == nil && operation.Status != "DONE" {
		operation, err = b.compute().ZoneOperations.Wait(project, zone, operation.Name).Do()
	}
	if err == nil && operation.Error != nil {
		err = errors.New(operation.Error.Errors[0].Message)
	}
	if err != nil {
		b.Error(err)
	}
}
