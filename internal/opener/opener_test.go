package opener_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/opener"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAnOpenedBackendIsCalledThroughTheQueueAndMeasured(t *testing.T) {
	inner, registry := fake.New(), prometheus.NewRegistry()
	storage, err := opener.New(t.Context(), backend.NewRegistry(fake.Kind{For: stowagev1alpha1.LocalType, Backend: inner}), nil, registry)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := storage.Open(LocalBackend("disks"), func() {})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := opened.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}

	if inner.Len() != 1 {
		t.Errorf("the backend holds %d volumes, not 1", inner.Len())
	}
	// The call, its time in the queue, and the calls that wait.
	if metrics, err := registry.Gather(); err != nil || len(metrics) != 3 {
		t.Errorf("%d metrics are gathered, not 3: %v", len(metrics), err)
	}
	if _, is := backend.As[backend.Prober](opened); !is {
		t.Error("the opened backend is no Prober any more")
	}
}
