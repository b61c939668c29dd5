package diskagent

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// metrics are the metrics of a node's disks, by backend.
type metrics struct {
	total, used, given, available, ready *prometheus.GaugeVec

	mu sync.Mutex
	// backends are the disks' backends, by the names of NodeDisks.
	backends map[string]string
}

func newMetrics() *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stowage_local_disk_" + name, Help: help}, []string{"backend"})
	}
	return &metrics{
		total:     gauge("total_bytes", "Size of the file system that a local backend uses on this node."),
		used:      gauge("used_bytes", "What is taken of it, by whomever."),
		given:     gauge("given_bytes", "Capacity of all volumes on it."),
		available: gauge("available_bytes", "What may still be given to volumes; 0 while the disk isn't Ready."),
		ready:     gauge("ready", "1 where volumes can be made on the disk, else 0."),
		backends:  map[string]string{},
	}
}

// register adds the metrics to a registry; nil: nobody asks for them.
func (n *metrics) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	var problems []error
	for _, gauge := range []*prometheus.GaugeVec{n.total, n.used, n.given, n.available, n.ready} {
		problems = append(problems, registerer.Register(gauge))
	}
	return errors.Join(problems...)
}

// set sets the numbers of a disk.
func (n *metrics) set(disk *stowagev1alpha1.NodeDisk) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.backends[disk.Name] = disk.Spec.Backend
	ready := 0.0
	if meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
		ready = 1
	}
	n.ready.WithLabelValues(disk.Spec.Backend).Set(ready)
	for _, number := range []struct {
		gauge *prometheus.GaugeVec
		value *resource.Quantity
	}{{n.total, disk.Status.Total}, {n.used, disk.Status.Used}, {n.given, disk.Status.Given}, {n.available, disk.Status.Available}} {
		value := 0.0
		if number.value != nil {
			value = float64(number.value.Value())
		}
		number.gauge.WithLabelValues(disk.Spec.Backend).Set(value)
	}
}

// forget drops the numbers of a disk that is gone.
func (n *metrics) forget(disk string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, gauge := range []*prometheus.GaugeVec{n.total, n.used, n.given, n.available, n.ready} {
		gauge.DeleteLabelValues(n.backends[disk])
	}
	delete(n.backends, disk)
}
