package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// claimMetrics are the metrics of claims' volumes, by the names of the kubelet's metrics. Where
// there is a kubelet, it serves them.
type claimMetrics struct {
	capacity, available, used, inodes, inodesFree, inodesUsed, abnormal *prometheus.Desc
}

func newClaimMetrics() claimMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("kubelet_volume_stats_"+name, help, []string{"namespace", "persistentvolumeclaim"}, nil)
	}
	return claimMetrics{
		capacity:   desc("capacity_bytes", "Size of the file system that a claim's volume lies on, or what its CSI driver says."),
		available:  desc("available_bytes", "What of it a pod can still write."),
		used:       desc("used_bytes", "What of it is taken."),
		inodes:     desc("inodes", "How many files and directories it can hold."),
		inodesFree: desc("inodes_free", "How many it can hold beside those that it holds."),
		inodesUsed: desc("inodes_used", "How many it holds."),
		abnormal:   desc("health_status_abnormal", "1 where something is wrong with the mounted volume, or its server or driver doesn't answer, else 0."),
	}
}

// collect emits the metrics of one claim.
func (c claimMetrics) collect(of usage, abnormal bool, emit func(*prometheus.Desc, float64)) {
	health := 0.0
	if abnormal || of.isSilent() {
		health = 1
	}
	emit(c.abnormal, health)
	if !of.isFresh() {
		return
	}
	emitAmount(of.last.Bytes, c.capacity, c.available, c.used, emit)
	emitAmount(of.last.Inodes, c.inodes, c.inodesFree, c.inodesUsed, emit)
}

func emitAmount(of *volumes.Amount, total, available, used *prometheus.Desc, emit func(*prometheus.Desc, float64)) {
	if of == nil {
		return
	}
	emit(total, float64(of.Total))
	emit(available, float64(of.Available))
	emit(used, float64(of.Used))
}
