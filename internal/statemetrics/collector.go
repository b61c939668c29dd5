// Package statemetrics serves what the objects of the cluster say about storage, as metrics. These
// are volumes by backend and phase, volumes in their undelete window, and which backends are Ready.
//
// It reads the cache at each scrape, and copies no object. It writes nothing, and decides nothing.
package statemetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// scrapeTimeout is how long the cache may take. It only takes long until it has synchronized.
const scrapeTimeout = 5 * time.Second

// Collector implements prometheus.Collector. Its methods may be called concurrently.
type Collector struct {
	cached    client.Reader
	informers Informers

	volumes, ready                 *prometheus.Desc
	retained, retainedBytes, first *prometheus.Desc
}

var _ prometheus.Collector = &Collector{}

// Register registers a Collector that reads objects from a cache.
func Register(registerer prometheus.Registerer, cached client.Reader, informers Informers) error {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return wrap.Error(registerer.Register(&Collector{
		cached: cached, informers: informers,
		volumes: describe("stowage_volumes", "PersistentVolumes of a backend, by phase.", "backend", "phase"),
		ready:   describe("stowage_backend_ready", "1 if the StorageBackend's condition Ready is True, else 0.", "backend"),
		retained: describe("stowage_retained_volumes",
			"Volumes in their undelete window: their claims are deleted, and their data is still kept.", "backend"),
		retainedBytes: describe("stowage_retained_bytes", "Capacity of the volumes in their undelete window.", "backend"),
		first: describe("stowage_retained_first_deadline_timestamp_seconds",
			"When the first undelete window of a backend ends, in seconds since 1970.", "backend"),
	}), "registering the metrics of volumes")
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{c.volumes, c.ready, c.retained, c.retainedBytes, c.first} {
		descriptions <- each
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if err := c.collect(ctx, metrics); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.volumes, err)
	}
}

func (c *Collector) collect(ctx context.Context, metrics chan<- prometheus.Metric) error {
	backends := &stowagev1alpha1.StorageBackendList{}
	if err := c.cached.List(ctx, backends, client.UnsafeDisableDeepCopy); err != nil {
		return wrap.Error(err, "listing the StorageBackends for metrics")
	}
	volumes, err := volumesIn(ctx, c.informers)
	if err != nil {
		return err
	}
	found := c.sum(volumes, backends.Items)
	for of, count := range found.volumes {
		metrics <- gauge(c.volumes, float64(count), of.backend, string(of.phase))
	}
	for backend, of := range found.backends {
		metrics <- gauge(c.ready, of.ready, backend)
		metrics <- gauge(c.retained, float64(of.retained), backend)
		metrics <- gauge(c.retainedBytes, of.retainedBytes, backend)
		if !of.first.IsZero() {
			metrics <- gauge(c.first, float64(of.first.Unix()), backend)
		}
	}
	return nil
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}
