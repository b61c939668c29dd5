package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const someMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="resource",subresource="",verb="PATCH",version="v1"} 12
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="resource",subresource="",verb="PATCH",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="persistentvolumeclaims",scope="resource",subresource="status",verb="PATCH",version="v1"} 1.2e+06
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 90
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="persistentvolumes",scope="cluster",subresource="",verb="WATCH",version="v1"} 5
apiserver_request_duration_seconds_count{verb="PATCH",resource="persistentvolumes"} 15
`

func TestRequestsAreCountedByVerbAndResource(t *testing.T) {
	got, err := parseRequests(strings.NewReader(someMetrics))
	if err != nil {
		t.Fatal(err)
	}
	want := requests{
		"PATCH persistentvolumes": 15, "failed PATCH persistentvolumes 409": 3, "PATCH persistentvolumeclaims/status": 1_200_000,
	}
	if writes := got.writes(); !maps.Equal(writes, want) {
		t.Errorf("counted %v, want %v", writes, want)
	}
	want["LIST persistentvolumes"] = 7
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if got.total() != 1_200_022 {
		t.Errorf("%d in total: a failed request counts once", got.total())
	}
	if volumes := got.total("persistentvolumes"); volumes != 22 {
		t.Errorf("%d to volumes", volumes)
	}
}

func TestRequestsSinceAnEarlierCount(t *testing.T) {
	before := requests{"PATCH a": 3, "PATCH b": 1}
	got := requests{"PATCH a": 5, "PATCH b": 1, "POST c": 2}.since(before)
	if want := (requests{"PATCH a": 2, "POST c": 2}); !maps.Equal(got, want) {
		t.Errorf("since %v: %v, want %v", before, got, want)
	}
}

func TestAMetricIsTheSumOverItsLabels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(answer, "workqueue_depth{name=\"a\",priority=\"0\"} 2\nworkqueue_depth{name=\"b\",priority=\"-100\"} 3\nother 1\n")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	if got, err := readMetrics(t.Context(), address, "workqueue_depth", "other"); err != nil || got["workqueue_depth"] != 5 || got["other"] != 1 {
		t.Errorf("read %v (%v)", got, err)
	}
	if _, err := readMetrics(t.Context(), address, "missing"); err == nil {
		t.Error("a metric that isn't served is read")
	}
}
