// Package gcemock is a server of Google's Compute API, for tests and demos. It has disks, instances,
// attachments, snapshots and the operations that change them, as Google's own clients see them.
// cmd/gce-mock serves it.
//
// Operations take time, survive a restart and always end. What exists is kept in one
// folder; disks are sparse files there, and package hotplug makes a block device appear
// where one is attached. Faults are made on demand.
//
// The server reads calls and has the catalog of projects, regions and zones. Its parts:
// wire (forms of requests and answers), fault, state (what exists, in a journal), engine
// (operations), and what they are about: disks, snapshots, instances.
//
// It knows nothing of Kubernetes, and nothing of Stowage imports it but tests.
package gcemock

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/gcemock/instances"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
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
	// Log gets each call and each operation that ends in error.
	Log logr.Logger
	// Now is the clock. Nil: the machine's.
	Now func() time.Time
}

// Fault is something that goes wrong with calls of a method.
type Fault = fault.Fault

// Duration is a time.Duration that is written as 2s in JSON.
type Duration = fault.Duration

// Server is a cloud: it answers calls, and hands what they change to its engine.
type Server struct {
	engine *engine.Engine
	mux    *http.ServeMux
}

// New opens a cloud, with all that its folder holds. Operations that were under way
// when it was closed, or killed, go on. They stop with the context. Call Close in the end.
func New(ctx context.Context, options Options) (*Server, error) {
	opened, err := engine.Open(ctx, engine.Options{
		Folder: options.Folder, Locations: wire.Locations{Projects: options.Projects, Zones: options.Zones}, Latency: options.Latency,
		QuotaGb: options.QuotaGb, Attacher: options.Attacher, Log: options.Log, Now: options.Now,
	}, jobs())
	if err != nil {
		return nil, err
	}
	s := &Server{engine: opened, mux: http.NewServeMux()}
	calls{engine: opened, token: token(options.Token)}.route(s.mux)
	admin{engine: opened, faults: opened.Faults, token: token(options.Token)}.route(s.mux)
	return s, nil
}

// Close stops what is under way, which goes on when the folder is opened again.
func (s *Server) Close() error { return s.engine.Close() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// EnsureInstance makes an instance that runs, at once, unless it is there.
func (s *Server) EnsureInstance(project, zone, name, machineType string) error {
	return instances.Ensure(s.engine, project, zone, name, machineType)
}

// ParseFault reads a fault from JSON.
func ParseFault(text []byte) (Fault, error) { return fault.Parse(text, methods()) }

// SetDown takes a zone down, or up again. In one that is down, nothing can be changed.
func (s *Server) SetDown(zone string, down bool) { s.engine.Faults.SetDown(zone, down) }

// SetSilent takes a zone down, so that its resources can't be read either. Aggregated lists say that it is missing. SetDown takes
// it up again.
func (s *Server) SetSilent(zone string) { s.engine.Faults.SetSilent(zone) }

// IsSilent reports whether a zone can't be read.
func (s *Server) IsSilent(zone string) bool { return s.engine.Faults.IsSilent(zone) }

// SetKey sets the state of a key of Cloud KMS: DISABLED, DESTROYED, DENIED, or ENABLED.
func (s *Server) SetKey(name, state string) { s.engine.Faults.SetKey(name, state) }

// Inject arms a fault.
func (s *Server) Inject(requested Fault) error {
	if err := requested.Check(methods()); err != nil {
		return err
	}
	s.engine.Faults.Add(requested)
	return nil
}
