package csi

import (
	"context"
	"path/filepath"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/stowage-dev/stowage/internal/csi/calls"
)

func TestCallsHaveTheMetricThatOtherCSIDriversHave(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	counts, err := calls.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, &ableDriver{}, worldOptions{counts: counts})
	_, err = w.node.NodeUnstageVolume(t.Context(), &csispec.NodeUnstageVolumeRequest{})
	wantCode(t, err, codes.InvalidArgument, "")

	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "csi_plugin_operations_seconds" {
		t.Fatalf("served are %v (%v)", families, err)
	}
	found := map[string]string{}
	for _, metric := range families[0].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["driver_name"] == driverName {
			found[labels["method_name"]] = labels["grpc_status_code"]
		}
	}
	if got := found["/csi.v1.Node/NodeUnstageVolume"]; got != "InvalidArgument" {
		t.Errorf("counted are %v", found)
	}
}

func TestACallThatHangsIsSeenAlsoAfterItsCallerGaveUp(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	counts, err := calls.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	began, release := make(chan struct{}), make(chan struct{})
	driver := &ableDriver{}
	driver.do = func(context.Context) error {
		close(began)
		<-release
		return nil
	}
	w := startWorld(t, driver, worldOptions{counts: counts})
	impatient, giveUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := w.node.NodeUnstageVolume(impatient, &csispec.NodeUnstageVolumeRequest{
			VolumeId: "a", StagingTargetPath: filepath.Join(w.dir, "staged"),
		})
		answered <- err
	}()
	<-began
	giveUp()
	wantCode(t, <-answered, codes.Canceled, "")
	if got := oldestCalls(t, registry); len(got) != 1 || got["/csi.v1.Node/NodeUnstageVolume"] <= 0 {
		t.Errorf("running are %v", got)
	}
	close(release)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if got := oldestCalls(t, registry); len(got) > 0 {
		t.Errorf("running are still %v", got)
	}
}

// oldestCalls are the ages of the calls that run, by method.
func oldestCalls(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ages := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "stowage_node_call_oldest_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "method_name" {
					ages[label.GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
	}
	return ages
}
