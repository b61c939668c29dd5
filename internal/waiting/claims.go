// Package waiting serves, as metrics, how many claims wait for a volume, why, and for how long.
//
// The claims' reconciler sets and forgets claims: in --scope=classes their conditions are not
// Stowage's, and don't have the reason.
package waiting

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/stowage-dev/stowage/internal/wrap"
)

var (
	countOf = prometheus.NewDesc("stowage_claims_waiting",
		"Claims that wait for a volume, by the reason in their condition Bindable.", []string{"reason"}, nil)
	oldestOf = prometheus.NewDesc("stowage_claims_waiting_oldest_seconds",
		"Age of the oldest claim that waits for a volume, by reason.", []string{"reason"}, nil)
)

// Claims are the claims that wait. All methods may be called concurrently. Nil Claims record
// nothing.
type Claims struct {
	clock  clock.PassiveClock
	mu     sync.Mutex
	claims map[types.NamespacedName]wait
}

type wait struct {
	reason string
	since  time.Time
}

var _ prometheus.Collector = &Claims{}

// New returns Claims that a registerer serves.
func New(registerer prometheus.Registerer, clock clock.PassiveClock) (*Claims, error) {
	c := &Claims{clock: clock, claims: map[types.NamespacedName]wait{}}
	return c, wrap.Error(registerer.Register(c), "registering the metrics of claims that wait")
}

// Set records why a claim waits. Since is when the claim was created. The reason is one of a
// condition: a few constants.
func (c *Claims) Set(claim types.NamespacedName, reason string, since time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims[claim] = wait{reason, since}
}

// Forget records that a claim doesn't wait any more, or is gone.
func (c *Claims) Forget(claim types.NamespacedName) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.claims, claim)
}

// Describe implements prometheus.Collector.
func (*Claims) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- countOf
	descriptions <- oldestOf
}

// Collect implements prometheus.Collector.
func (c *Claims) Collect(metrics chan<- prometheus.Metric) {
	counts, oldest := c.sum()
	for reason, count := range counts {
		metrics <- prometheus.MustNewConstMetric(countOf, prometheus.GaugeValue, float64(count), reason)
		metrics <- prometheus.MustNewConstMetric(oldestOf, prometheus.GaugeValue, oldest[reason].Seconds(), reason)
	}
}

func (c *Claims) sum() (counts map[string]int, oldest map[string]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts, oldest = map[string]int{}, map[string]time.Duration{}
	for _, each := range c.claims {
		counts[each.reason]++
		// The API server's clock may be ahead of this one.
		oldest[each.reason] = max(oldest[each.reason], c.clock.Since(each.since), 0)
	}
	return counts, oldest
}
