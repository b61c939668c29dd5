package nodemanager

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// How an operation ended, in metrics.
const (
	outcomeOK           = "OK"
	outcomeCancelled    = "Cancelled"
	outcomeNotSupported = "NotSupported"
	outcomeGone         = "Gone"
	outcomeSilent       = "Silent"
	outcomeFailed       = "Failed"
)

// Numbers are the metrics of the node manager. Of a nil one, all methods do nothing.
type Numbers struct {
	seconds   *prometheus.HistogramVec
	podReady  prometheus.Histogram
	waiting   *prometheus.GaugeVec
	runningOf *prometheus.Desc
	oldestOf  *prometheus.Desc
	pendingOf *prometheus.Desc
	mountedOf *prometheus.Desc
	claims    claimNumbers
	mounter   mount.Mounter
	usages    *usages

	mu    sync.Mutex
	runs  map[*run]struct{}
	pods  map[types.UID]podNumbers
	times map[types.UID]podTime
}

// run is one operation that runs.
type run struct {
	volumeType string
	kind       fmt.Stringer
	began      time.Time
}

// NewNumbers makes the metrics and registers them. The mounter reads the mount table.
func NewNumbers(registerer prometheus.Registerer, mounter mount.Mounter) (*Numbers, error) {
	ofOperation := []string{"type", "operation"}
	n := &Numbers{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stowage_node_operation_seconds",
			Help: "How long one attempt to mount, unmount, refresh or grow a volume took, by volume type, operation and outcome " +
				"(OK, Failed, NotSupported, Gone: its disk is, Silent: its server is, or Cancelled).",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, append(ofOperation, "outcome")),
		podReady: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stowage_node_pod_volumes_ready_seconds",
			Help:    "How long it took from when a pod was first seen until all of its volumes were there.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 10),
		}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stowage_node_operations_queued",
			Help: "Operations that wait until others of their volume type are over.",
		}, []string{"type"}),
		runningOf: prometheus.NewDesc("stowage_node_operations_running", "Operations that run now.", ofOperation, nil),
		oldestOf: prometheus.NewDesc("stowage_node_operation_oldest_seconds",
			"For how long the operation has been running that began first of those that run now.", ofOperation, nil),
		pendingOf: prometheus.NewDesc("stowage_node_volumes_pending",
			"Volumes that pods of this node wait for, by the reason (Pending, NotSupported, FailedMount, or Working while they are mounted).",
			[]string{"reason"}, nil),
		mountedOf: prometheus.NewDesc("stowage_node_volumes_mounted", "Volumes that pods of this node have, by type.", []string{"type"}, nil),
		claims:    newClaimNumbers(), mounter: mounter, usages: newUsages(),
		runs: map[*run]struct{}{}, pods: map[types.UID]podNumbers{}, times: map[types.UID]podTime{},
	}
	var problems []error
	for _, collector := range []prometheus.Collector{n.seconds, n.podReady, n.waiting, n} {
		problems = append(problems, registerer.Register(collector))
	}
	return n, errors.Join(problems...)
}

// begin notes that an operation begins. What it returns is called with how it ended.
func (n *Numbers) begin(volumeType string, kind fmt.Stringer) (ended func(outcome string)) {
	if n == nil {
		return func(string) {}
	}
	began := &run{volumeType: volumeType, kind: kind, began: time.Now()}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs[began] = struct{}{}
	return func(outcome string) {
		n.seconds.WithLabelValues(volumeType, kind.String(), outcome).Observe(time.Since(began.began).Seconds())
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.runs, began)
	}
}

// setQueued sets how many operations of a volume type wait for their turn.
func (n *Numbers) setQueued(volumeType string, count int) {
	if n != nil {
		n.waiting.WithLabelValues(volumeType).Set(float64(count))
	}
}

// outcomeOf is how an operation ended.
func outcomeOf(err error, cancelled bool) string {
	switch {
	case err == nil:
		return outcomeOK
	case cancelled:
		return outcomeCancelled
	case errors.Is(err, volumes.ErrNotSupported):
		return outcomeNotSupported
	case errors.Is(err, volumes.ErrGone):
		return outcomeGone
	case errors.Is(err, mount.ErrSilent), errors.Is(err, mount.ErrBusy), errors.Is(err, mount.ErrDetached):
		return outcomeSilent
	default:
		return outcomeFailed
	}
}

// Describe implements prometheus.Collector.
func (n *Numbers) Describe(descriptions chan<- *prometheus.Desc) {
	of := n.claims
	for _, description := range []*prometheus.Desc{
		n.runningOf, n.oldestOf, n.pendingOf, n.mountedOf,
		of.capacity, of.available, of.used, of.inodes, of.inodesFree, of.inodesUsed, of.abnormal,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector: it tells how things stand now.
func (n *Numbers) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	n.collectRuns(gauge)
	sums := n.sums()
	for reason, count := range sums.pending {
		gauge(n.pendingOf, float64(count), reason)
	}
	for volumeType, count := range sums.mounted {
		gauge(n.mountedOf, float64(count), volumeType)
	}
	n.collectClaims(metrics, sums)
}

// collectRuns tells what runs now, and for how long.
func (n *Numbers) collectRuns(gauge func(desc *prometheus.Desc, value float64, labels ...string)) {
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
