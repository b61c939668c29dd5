package csi

import (
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

func TestCallsHaveTheMetricThatOtherCSIDriversHave(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	counts, err := NewCalls(registry)
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
