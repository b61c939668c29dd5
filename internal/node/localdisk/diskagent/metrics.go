package diskagent

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Metrics are the metrics of a node's disks, by backend. Methods may be called concurrently.
type Metrics struct {
	total, used, given, available, ready *prometheus.GaugeVec

	mu sync.Mutex
	// backends are by the names of NodeDisks: a deleted NodeDisk leaves no spec.
	backends map[string]string
}

// NewMetrics returns metrics of no disk. Register registers them.
func NewMetrics() *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stowage_local_disk_" + name, Help: help}, []string{"backend"})
	}
	return &Metrics{
		total:     gauge("total_bytes", "Size of the file system that a local backend uses on this node."),
		used:      gauge("used_bytes", "How much of it is used, by volumes and other files."),
		given:     gauge("given_bytes", "Capacity of all volumes on it."),
		available: gauge("available_bytes", "How much of it new volumes can have; 0 while the disk isn't Ready."),
		ready:     gauge("ready", "1 where volumes can be made on the disk, else 0."),
		backends:  map[string]string{},
	}
}

// Register adds the metrics to a registry; nil: they aren't exported.
func (m *Metrics) Register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	var problems []error
	for _, gauge := range m.gauges() {
		problems = append(problems, registerer.Register(gauge))
	}
	return errors.Join(problems...)
}

func (m *Metrics) gauges() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{m.total, m.used, m.given, m.available, m.ready}
}

// set sets the metrics of a disk.
func (m *Metrics) set(disk *stowagev1alpha1.NodeDisk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backends[disk.Name] = disk.Spec.Backend
	ready := 0.0
	if meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
		ready = 1
	}
	m.ready.WithLabelValues(disk.Spec.Backend).Set(ready)
	for _, quantity := range []struct {
		gauge *prometheus.GaugeVec
		value *resource.Quantity
	}{{m.total, disk.Status.Total}, {m.used, disk.Status.Used}, {m.given, disk.Status.Given}, {m.available, disk.Status.Available}} {
		value := 0.0
		if quantity.value != nil {
			value = float64(quantity.value.Value())
		}
		quantity.gauge.WithLabelValues(disk.Spec.Backend).Set(value)
	}
}

// forget drops the metrics of a disk that is gone.
func (m *Metrics) forget(disk string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, gauge := range m.gauges() {
		gauge.DeleteLabelValues(m.backends[disk])
	}
	delete(m.backends, disk)
}
