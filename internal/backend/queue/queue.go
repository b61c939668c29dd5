// Package queue keeps slow storage from blocking the reconcilers that call it.
//
// A Queue is between the reconcilers and the backends. It makes their calls in goroutines of its own,
// and is fair between the waiting namespaces. For each backend it makes as many at once as its object
// allows, not counting calls that the storage has accepted. A caller waits for a moment. If the
// answer takes longer, the caller gets backend.Queued, is woken when the answer is there, and repeats
// the call to get it. Each call is measured.
//
// The queue decides nothing and has no Kubernetes client. A crash loses calls, with unknown
// outcomes; every caller repeats such calls.
package queue

import (
	"context"
	"sync"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

// Queue makes calls to backends. All methods can be called at once.
type Queue struct {
	ctx     context.Context
	metrics *metrics.Metrics
	mu      sync.Mutex
	// queues are the backends' queues, by the backend's name.
	queues map[string]*backendQueue
}

// New makes a queue. Its calls end with the context. Nil metrics measure nothing.
func New(ctx context.Context, measured *metrics.Metrics) *Queue {
	return &Queue{ctx: ctx, metrics: measured, queues: map[string]*backendQueue{}}
}

// Target is the target of calls: one StorageBackend, or one server.
type Target struct {
	// Name in messages, and of its queue: StorageBackend disks.
	Name string
	// Metric is its name in metrics. Empty: its calls are not measured.
	Metric string
	// Version of what calls are decided on, as of a StorageBackend's spec. An answer is valid for
	// one version.
	Version string
	// Limit is how many calls run at once; at least one.
	Limit int
}

// served is a backend with calls that go through the queue.
type served struct {
	backend.Backend
	queue  *Queue
	target Target
	wake   func()
	// direct: callers make the calls themselves, and wait for the answer.
	direct bool
}
