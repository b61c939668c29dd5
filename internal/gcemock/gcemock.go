// Package gcemock is a server of Google's Compute API, for tests and demos: disks,
// instances, attachments, snapshots and the operations that change them, as Google's
// own clients see them. cmd/gce-mock serves it.
//
// Operations take time, survive a restart and always end. What exists is kept in one
// folder; disks are sparse files there, and package hotplug makes a block device appear
// where one is attached. Faults are made on demand.
//
// It knows nothing of Kubernetes, and nothing of Stowage imports it but tests.
package gcemock

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

// Options describe a cloud.
type Options struct {
	// Folder keeps all that exists. It belongs to one server at a time.
	Folder string
	// Projects and Zones that there are.
	Projects, Zones []string
	// Latency is how long an operation takes.
	Latency time.Duration
	// QuotaGb limits the size of all disks of a project in a region; 0: no limit.
	QuotaGb int64
	// Token is the bearer token that each call must carry. Empty: any, or none.
	Token string
	// Attacher makes devices appear on instances. Nil: there are none to see.
	Attacher hotplug.Attacher
	// Log tells what was asked for and how it ended.
	Log logr.Logger
	// Now is the clock. Nil: the machine's.
	Now func() time.Time
}

// Server is a cloud. Its state changes under the lock of its store.
type Server struct {
	options Options
	*store
	contents contents
	faults   *faults
	busy     keyedLock
	mux      *http.ServeMux
	waiting  waiting

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New opens a cloud, with all that its folder holds. Operations that were under way
// when it was closed, or killed, go on. They stop with the context. Call Close in the end.
func New(ctx context.Context, options Options) (*Server, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Attacher == nil {
		options.Attacher = hotplug.None{}
	}
	opened, err := openStore(options.Folder, options.Now())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Server{
		options: options, store: opened, contents: contents{folder: options.Folder},
		faults: newFaults(), waiting: newWaiting(), ctx: ctx, stop: stop,
	}
	s.faults.set(latency{Operation: options.Latency})
	s.mux = s.routed()
	s.restoreDevices(ctx)
	s.resume()
	return s, nil
}

// Close stops what is under way, which goes on when the folder is opened again.
func (s *Server) Close() error {
	s.stop()
	s.Lock()
	s.closed = true
	s.Unlock()
	s.running.Wait()
	return s.close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// timestamp is the present as Google writes it.
func (s *Server) timestamp() string {
	return s.options.Now().Format("2006-01-02T15:04:05.000-07:00")
}
