package csi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

const createVolume = "/csi.v1.Controller/CreateVolume"

// series is how often calls were measured, by driver, method and code.
func series(t *testing.T, of prometheus.Gatherer) map[string]uint64 {
	t.Helper()
	families, err := of.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			counts[strings.Join([]string{family.GetName(), labels["driver_name"], labels["method_name"], labels["grpc_status_code"]}, " ")] = series.GetHistogram().GetSampleCount()
		}
	}
	return counts
}

func TestCallsAreMeasuredAsSidecarsMeasureThem(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}
	w.before = func(any) error { return status.Error(codes.ResourceExhausted, "full") }
	if _, err := w.Provision(t.Context(), backendtest.Request("2")); err == nil {
		t.Fatal("it made a volume without room")
	}
	counts := series(t, w.metrics)
	for _, want := range []string{
		"csi_sidecar_operations_seconds " + driverName + " " + createVolume + " OK",
		"csi_sidecar_operations_seconds " + driverName + " " + createVolume + " ResourceExhausted",
		"csi_sidecar_operations_seconds " + driverName + " /csi.v1.Identity/GetPluginInfo OK",
	} {
		if counts[want] != 1 {
			t.Errorf("%s was measured %d times, and there are %v", want, counts[want], slices.Sorted(maps.Keys(counts)))
		}
	}
}

func TestADriverCannotMakeSeriesWithoutEnd(t *testing.T) {
	w := newWorld(t)
	code := codes.Code(100)
	w.before = func(request any) error {
		if _, is := request.(*csispec.CreateVolumeRequest); !is {
			return nil
		}
		code++
		return status.Error(code, "new each time")
	}
	for range 50 {
		if _, err := w.Provision(t.Context(), backendtest.Request("1")); err == nil {
			t.Fatal("it made a volume")
		}
	}
	counts := series(t, w.metrics)
	if counts["csi_sidecar_operations_seconds "+driverName+" "+createVolume+" Unknown"] != 50 || len(counts) > 4 {
		t.Errorf("there are %v", counts)
	}
}

func TestADriverThatIsGoneHasNoSeriesAndNoConnection(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if _, err := w.Provision(t.Context(), backendtest.Request("1")); err != nil {
			t.Fatal(err)
		}
		backend.NewRegistry(w.kind).Forget(driverName)
		if counts := series(t, w.metrics); len(counts) > 0 {
			t.Errorf("there are %v", counts)
		}
	}
	if asked := len(did[*csispec.GetPluginInfoRequest](w.driver)); asked != 2 {
		t.Errorf("a new connection was made %d times", asked)
	}
}

func TestNoSecretOfACallIsLogged(t *testing.T) {
	w, request := newWorld(t), backendtest.Request("1")
	w.secrets["maker"] = map[string][]byte{"password": []byte("hush")}
	w.object.Spec.CSI.Secrets = stowagev1alpha1.CSISecrets{
		Provision: &stowagev1alpha1.SecretReference{Name: "maker"}, ControllerPublish: &stowagev1alpha1.SecretReference{Name: "maker"},
		ControllerExpand: &stowagev1alpha1.SecretReference{Name: "maker"},
	}
	request.Parameters = map[string]string{"tier": strings.Repeat("gold", 10_000)}
	w.open(t)
	made, err := w.Provision(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	attached := backend.AttachRequest{ID: made.Handle, Node: backend.NodeIdentity{Name: "a", DriverID: "id-a"}, Volume: volumeWith(made.Handle)}
	if _, err := w.Backend.(backend.Attacher).Attach(t.Context(), attached); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Expand(t.Context(), w.Backend, backend.ExpandRequest{ID: made.Handle, Capacity: request.Capacity}); err != nil {
		t.Fatal(err)
	}
	if err := w.Backend.(backend.Attacher).Detach(t.Context(), made.Handle, attached.Node); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), made.Handle); err != nil {
		t.Fatal(err)
	}
	logged := w.log.String()
	for _, method := range []string{"CreateVolume", "ControllerPublishVolume", "ControllerExpandVolume", "ControllerUnpublishVolume", "DeleteVolume"} {
		if !strings.Contains(logged, "/csi.v1.Controller/"+method+`"`) {
			t.Errorf("%s is not in the log", method)
		}
	}
	if strings.Count(logged, "***stripped***") != 5 || !strings.Contains(logged, made.Handle) || strings.Contains(logged, "hush") || strings.Contains(logged, "password") {
		t.Errorf("it logs %s", logged)
	}
	for line := range strings.Lines(logged) {
		if len(line) > 6<<10 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
}
