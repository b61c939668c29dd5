package usage

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Metrics are the metrics of the node's volumes.
type Metrics struct{ used, capacity, inodes *prometheus.GaugeVec }

// NewMetrics returns metrics of no volume. Register registers them.
func NewMetrics() *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stowage_local_volume_" + name, Help: help},
			[]string{"volume", "backend", "namespace", "claim"})
	}
	return &Metrics{
		used:     gauge("used_bytes", "How much of a local volume of this node is used."),
		capacity: gauge("capacity_bytes", "The capacity of a local volume of this node."),
		inodes:   gauge("inodes", "How many files and directories a local volume of this node has."),
	}
}

// Register adds the metrics to a registry; nil: they aren't exported.
func (m *Metrics) Register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	return errors.Join(registerer.Register(m.used), registerer.Register(m.capacity), registerer.Register(m.inodes))
}

// Set sets the metrics of a volume. Usage is nil where it isn't known yet: then the status has it.
func (m *Metrics) Set(volume *stowagev1alpha1.NodeVolume, usage *Usage) {
	of := prometheus.Labels{
		"volume": volume.Name, "backend": volume.Spec.Backend,
		"namespace": volume.Spec.ClaimRef.Namespace, "claim": volume.Spec.ClaimRef.Name,
	}
	if volume.Spec.SnapshotUID != "" {
		of["claim"] = "" // it isn't the claim's volume
	}
	if volume.Status.Capacity != nil {
		m.capacity.With(of).Set(float64(volume.Status.Capacity.Value()))
	}
	inodes := volume.Status.UsedInodes
	switch {
	case usage != nil:
		m.used.With(of).Set(float64(usage.Bytes))
		inodes = usage.Inodes
	case volume.Status.Used != nil:
		m.used.With(of).Set(float64(volume.Status.Used.Value()))
	}
	if inodes != nil {
		m.inodes.With(of).Set(float64(*inodes))
	}
}

// Forget drops the metrics of a volume that is gone.
func (m *Metrics) Forget(name string) {
	of := prometheus.Labels{"volume": name}
	for _, gauge := range []*prometheus.GaugeVec{m.used, m.capacity, m.inodes} {
		gauge.DeletePartialMatch(of)
	}
}
