package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Describe implements prometheus.Collector.
func (n *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	of := n.claims
	for _, description := range []*prometheus.Desc{
		n.runningOf, n.oldestOf, n.pendingOf, n.mountedOf,
		of.capacity, of.available, of.used, of.inodes, of.inodesFree, of.inodesUsed, of.abnormal,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (n *Metrics) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	n.collectRuns(gauge)
	sums := n.sums()
	for reason, count := range sums.Pending {
		gauge(n.pendingOf, float64(count), reason)
	}
	for volumeType, count := range sums.Mounted {
		gauge(n.mountedOf, float64(count), volumeType)
	}
	n.collectClaims(metrics, sums)
}

// collectRuns collects the running operations, and the age of the oldest.
func (n *Metrics) collectRuns(gauge func(desc *prometheus.Desc, value float64, labels ...string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	type operation struct{ volumeType, kind string }
	counts, oldest := map[operation]int{}, map[operation]time.Duration{}
	for run := range n.runs {
		of := operation{run.volumeType, run.kind.String()}
		counts[of]++
		oldest[of] = max(oldest[of], time.Since(run.began))
	}
	for of, count := range counts {
		gauge(n.runningOf, float64(count), of.volumeType, of.kind)
		gauge(n.oldestOf, oldest[of].Seconds(), of.volumeType, of.kind)
	}
}

// collectClaims collects the usage of the claims' volumes that are mounted now.
func (n *Metrics) collectClaims(metrics chan<- prometheus.Metric, sums Pod) {
	table, err := n.mounter.Table()
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(n.claims.capacity, err)
		return
	}
	mounted := mountedPaths(table)
	var measured []ClaimMount
	for claim, volume := range sums.Claims {
		// The path of an unmounted volume is on the agent's own disk.
		if volume.IsDevice || mounted[volume.Path] {
			measured = append(measured, volume)
		} else {
			delete(sums.Claims, claim)
		}
	}
	known := n.usages.measure(measured)
	for claim, volume := range sums.Claims {
		n.claims.collect(known[volume.Path], volume.Abnormal, func(desc *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, claim.Namespace, claim.Name)
		})
	}
}

func mountedPaths(table mount.Table) map[string]bool {
	paths := make(map[string]bool, len(table))
	for _, point := range table {
		paths[point.Path] = true
	}
	return paths
}
