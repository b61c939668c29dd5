package gce

import (
	"net/http"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestAProbeFindsWhatIsWrong(t *testing.T) {
	type change = func(*stowagev1alpha1.GCEBackend)
	for name, test := range map[string]struct {
		change change
		fault  *gcemock.Fault
		kind   backend.ErrorKind
		says   string
	}{
		"nothing":         {func(*stowagev1alpha1.GCEBackend) {}, nil, "", ""},
		"another type":    {func(spec *stowagev1alpha1.GCEBackend) { spec.DiskType = "pd-ssd" }, nil, "", ""},
		"a wrong project": {func(spec *stowagev1alpha1.GCEBackend) { spec.Project = "nobodys" }, nil, backend.Unavailable, "there is no project nobodys"},
		"a wrong zone": {
			func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA, "mars-a"} }, nil, backend.Invalid,
			"project demo has no zone mars-a: correct gce.zones; it has europe-west3-a, europe-west3-b, europe-west3-c",
		},
		"a wrong type": {func(spec *stowagev1alpha1.GCEBackend) { spec.DiskType = "pd-fast" }, nil, backend.Invalid, "has no disks of type pd-fast"},
		"a wrong host": {func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint = "http://127.0.0.1:9/compute/v1/" }, nil, backend.Unavailable, "can't be reached"},
		"a wrong path": {func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint += "v2/" }, nil, backend.Unavailable, "correct gce.endpoint"},
		"no permission": {
			func(*stowagev1alpha1.GCEBackend) {},
			&gcemock.Fault{Method: "zones.list", Status: http.StatusForbidden, Reason: "forbidden"}, backend.Unavailable, "grant the roles",
		},
		"a quiet cloud": {func(*stowagev1alpha1.GCEBackend) {}, &gcemock.Fault{Method: "diskTypes.get", Status: http.StatusServiceUnavailable}, backend.Unavailable, "isn't ready"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.fault != nil {
				w.inject(*test.fault)
			}
			err := w.open(test.change).Probe(t.Context())
			if test.kind == "" {
				w.must(err)
				return
			}
			w.mustBe(err, test.kind, test.says)
		})
	}
}

func TestASpecThatCanNotBeServedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stowagev1alpha1.GCEBackend)
		says   string
	}{
		"a project that climbs up":    {func(spec *stowagev1alpha1.GCEBackend) { spec.Project = "../x" }, "gce.project"},
		"a zone that climbs up":       {func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{"../x"} }, "gce.zones"},
		"an endpoint that is a file":  {func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint = "file:///etc" }, "gce.endpoint"},
		"an endpoint with a password": {func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint = "https://a:b@c/" }, "gce.endpoint"},
		"an endpoint with a query":    {func(spec *stowagev1alpha1.GCEBackend) { spec.Endpoint = "https://c/?a=b" }, "gce.endpoint"},
		"a label that is Stowage's own": {func(spec *stowagev1alpha1.GCEBackend) {
			spec.Labels = map[string]stowagev1alpha1.GCELabelValue{"stowage-backend": "x"}
		}, "is Stowage's own"},
		"a label of capitals": {func(spec *stowagev1alpha1.GCEBackend) {
			spec.Labels = map[string]stowagev1alpha1.GCELabelValue{"Team": "x"}
		}, `the key "Team"`},
		"a label with a wrong value": {func(spec *stowagev1alpha1.GCEBackend) {
			spec.Labels = map[string]stowagev1alpha1.GCELabelValue{"team": "a b"}
		}, `the value "a b" of team`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			object := &stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{GCE: &w.spec}}
			test.change(object.Spec.GCE)
			_, err := w.kind.Open(object)
			w.mustBe(err, backend.Invalid, test.says)
		})
	}
}

func TestAnEndpointIsWhatPathsAreAppendedTo(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "http://mock:8085": "http://mock:8085/compute/v1/", "http://mock:8085/": "http://mock:8085/compute/v1/",
		"https://eu.example.com/compute/v1": "https://eu.example.com/compute/v1/", "https://eu.example.com/x/": "https://eu.example.com/x/",
	} {
		if got, err := transport.EndpointOf(text); got != want || err != nil {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

func TestAClusterThatIsNotKnownOwnsNothing(t *testing.T) {
	w := newWorld(t)
	_, err := NewKind("", w.keys).Open(&stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{GCE: &w.spec}})
	w.mustBe(err, backend.Unavailable, "kube-system")
}
