// Package metrics has the metrics of the volumes of a node's pods. They are running operations, their
// durations and outcomes, and mounted and pending volumes. The usage of claims has the names of the
// kubelet's metrics. The usage of a file system that hangs is left out.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Outcomes of operations.
const (
	OutcomeOK           = "OK"
	OutcomeCancelled    = "Cancelled"
	OutcomeNotSupported = "NotSupported"
	OutcomeGone         = "Gone"
	OutcomeSilent       = "Silent"
	OutcomeFailed       = "Failed"
)

// Metrics are the metrics of the node manager. All methods of a nil one do nothing.
type Metrics struct {
	seconds   *prometheus.HistogramVec
	podReady  prometheus.Histogram
	waiting   *prometheus.GaugeVec
	runningOf *prometheus.Desc
	oldestOf  *prometheus.Desc
	pendingOf *prometheus.Desc
	mountedOf *prometheus.Desc
	claims    claimMetrics
	mounter   mount.Mounter
	usages    *usages

	mu    sync.Mutex
	runs  map[*run]struct{}
	pods  map[types.UID]Pod
	times map[types.UID]podTime
}

// run is one running operation.
type run struct {
	volumeType string
	kind       fmt.Stringer
	began      time.Time
}

// Working is the reason of a volume that isn't mounted yet and has no error.
const Working = "Working"

// Pod is how far the volumes of one pod are.
type Pod struct {
	// Mounted counts volumes by type, and Pending by the reason why they aren't mounted.
	Mounted, Pending map[string]int
	Claims           map[client.ObjectKey]ClaimMount
}

// ClaimMount is the volume of a claim that a pod has mounted.
type ClaimMount struct {
	Path string
	// IsDevice: pods see a block device at the path.
	IsDevice bool
	// Abnormal: it has an error, although it is mounted.
	Abnormal bool
	// Measure has its driver measure it; nil if its file system is asked.
	Measure func(ctx context.Context) (volumes.Usage, error)
}

// podTime is when a pod was first seen, and whether its volumes are ready.
type podTime struct {
	seen  time.Time
	ready bool
}

// New registers the metrics. The mounter reads the mount table.
func New(registerer prometheus.Registerer, mounter mount.Mounter) (*Metrics, error) {
	ofOperation := []string{"type", "operation"}
	n := &Metrics{
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
		claims:    newClaimMetrics(), mounter: mounter, usages: newUsages(),
		runs: map[*run]struct{}{}, pods: map[types.UID]Pod{}, times: map[types.UID]podTime{},
	}
	var problems []error
	for _, collector := range []prometheus.Collector{n.seconds, n.podReady, n.waiting, n} {
		problems = append(problems, registerer.Register(collector))
	}
	return n, errors.Join(problems...)
}

// Begin counts a running operation, until its outcome is passed to ended.
func (n *Metrics) Begin(volumeType string, kind fmt.Stringer) (ended func(outcome string)) {
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

// SetQueued sets how many operations of a volume type are queued.
func (n *Metrics) SetQueued(volumeType string, count int) {
	if n != nil {
		n.waiting.WithLabelValues(volumeType).Set(float64(count))
	}
}

// OutcomeOf is the outcome of an operation, for metrics.
func OutcomeOf(err error, cancelled bool) string {
	switch {
	case err == nil:
		return OutcomeOK
	case cancelled:
		return OutcomeCancelled
	case errors.Is(err, volumes.ErrNotSupported):
		return OutcomeNotSupported
	case errors.Is(err, volumes.ErrGone):
		return OutcomeGone
	case errors.Is(err, remote.ErrSilent), errors.Is(err, remote.ErrBusy), errors.Is(err, remote.ErrDetached):
		return OutcomeSilent
	default:
		return OutcomeFailed
	}
}
