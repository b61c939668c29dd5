// Package calls measures the calls of kubelets that CSI drivers answer: how long each took, and for how
// long the oldest has been running. It changes nothing about the calls.
package calls

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls counts the calls of all drivers, under the names of
// github.com/kubernetes-csi/csi-lib-utils/metrics, which dashboards of CSI drivers know. It also
// knows the calls that run now. Of a nil one, all methods do nothing.
type Calls struct {
	seconds *prometheus.HistogramVec
	oldest  *prometheus.Desc

	mu      sync.Mutex
	running map[*runningCall]struct{}
}

// runningCall is a call that has no answer yet. A caller that gives up doesn't end it.
type runningCall struct {
	driver, method string
	began          time.Time
}

// New makes the metrics and registers them.
func New(registerer prometheus.Registerer) (*Calls, error) {
	calls := &Calls{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "csi_plugin_operations_seconds",
			Help:    "How long a call of the kubelet took, by driver, method and gRPC code.",
			Buckets: []float64{.01, .1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
		}, []string{"driver_name", "method_name", "grpc_status_code"}),
		oldest: prometheus.NewDesc("stowage_node_call_oldest_seconds",
			"For how long the call of the kubelet has been running that began first of those that run now.",
			[]string{"driver_name", "method_name"}, nil),
		running: map[*runningCall]struct{}{},
	}
	for _, collector := range []prometheus.Collector{calls.seconds, calls} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics of CSI calls: %w", err)
		}
	}
	return calls, nil
}

// Begin counts a call as running, until end is called with its code.
func (c *Calls) Begin(driver, method string) (end func(code string)) {
	if c == nil {
		return func(string) {}
	}
	call := &runningCall{driver: driver, method: method, began: time.Now()}
	c.mu.Lock()
	c.running[call] = struct{}{}
	c.mu.Unlock()
	return func(code string) {
		c.mu.Lock()
		delete(c.running, call)
		c.mu.Unlock()
		c.seconds.WithLabelValues(driver, method, code).Observe(time.Since(call.began).Seconds())
	}
}

// Describe implements prometheus.Collector.
func (c *Calls) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.oldest }

// Collect implements prometheus.Collector.
func (c *Calls) Collect(metrics chan<- prometheus.Metric) {
	type kind struct{ driver, method string }
	oldest := map[kind]time.Duration{}
	c.mu.Lock()
	for call := range c.running {
		of := kind{call.driver, call.method}
		oldest[of] = max(oldest[of], time.Since(call.began))
	}
	c.mu.Unlock()
	for of, age := range oldest {
		metrics <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, age.Seconds(), of.driver, of.method)
	}
}
