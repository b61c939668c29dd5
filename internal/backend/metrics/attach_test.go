package metrics_test

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

func TestAMeasuredBackendKeepsTheContractOfAttaching(t *testing.T) {
	metrics, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	backendtest.AttachContract(t, func(*testing.T) backendtest.Machines {
		inner, absent := fake.New(), backend.NodeIdentity{Name: "node-9", ProviderID: "fake:///node-9"}
		inner.SetMachine(absent, backend.MachineGone)
		return backendtest.Machines{
			Backend: metrics.Measure("disks", inner),
			Nodes:   [2]backend.NodeIdentity{{Name: "node-1", ProviderID: "fake:///node-1"}, {Name: "node-2", ProviderID: "fake:///node-2"}},
			Absent:  absent,
			Stop:    func(node backend.NodeIdentity) { inner.SetMachine(node, backend.MachineStopped) },
			Remove:  func(node backend.NodeIdentity) { inner.SetMachine(node, backend.MachineGone) },
		}
	})
}

func TestWhatHappensToAttachmentsIsServedUntilTheBackendIsGone(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	measured := metrics.Measure("disks", fake.New())
	attacher, _ := backend.As[backend.Attacher](measured)
	_, _ = attacher.Attach(t.Context(), backend.AttachRequest{ID: "absent"})
	metrics.Compared("disks", 2)
	metrics.Forced("disks")

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, family := range families {
		told = append(told, family.GetName())
	}
	want := []string{"stowage_backend_forced_detaches_total", "stowage_backend_operation_seconds", "stowage_backend_stray_attachments"}
	if !slices.Equal(told, want) {
		t.Errorf("it tells of %v", told)
	}
	metrics.Forget("disks")
	if left, _ := registry.Gather(); len(left) != 0 {
		t.Errorf("%v is left of a backend that is gone", left)
	}
}
