// Package queue keeps slow storage from holding up the reconcilers that call it.
//
// A Queue stands between the reconcilers and the backends. It makes their calls in
// goroutines of its own: for each backend as many at once as its object allows, without
// those that the storage has taken, and fair between the namespaces that wait. A caller
// stays for a moment. If the answer takes longer, the caller gets backend.Queued, is woken
// when the answer is there, and repeats the call to get it. Each call is measured.
//
// The queue decides nothing and knows no Kubernetes client. A crash loses calls whose
// outcome isn't known then; every caller repeats such calls.
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
	// queues are those of the backends, by their names.
	queues map[string]*backendQueue
}

// New makes a queue whose calls end when the context does. Nil metrics measure nothing.
func New(ctx context.Context, measured *metrics.Metrics) *Queue {
	return &Queue{ctx: ctx, metrics: measured, queues: map[string]*backendQueue{}}
}

// Target is what calls go to: one StorageBackend, or one server.
type Target struct {
	// Name is what messages call it, and what it has its queue by: StorageBackend disks.
	Name string
	// Metric is the name that its calls are measured under. Empty: they are not measured.
	Metric string
	// Version of what calls are decided on, as of a StorageBackend's spec. An answer holds
	// for one version.
	Version string
	// Limit is how many calls run at once; at least one.
	Limit int
}

// served is a backend whose calls the queue makes.
type served struct {
	backend.Backend
	queue  *Queue
	target Target
	wake   func()
	// direct: callers make their calls themselves, and wait for the answer.
	direct bool
}
