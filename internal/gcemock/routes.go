package gcemock

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/instances"
	"github.com/stowage-dev/stowage/internal/gcemock/snapshots"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// routes are all methods that are served.
func routes() []engine.Route {
	return slices.Concat(catalogRoutes(), disks.Routes(), snapshots.Routes(), instances.Routes(), engine.Routes())
}

// methods are the names of all methods that are served.
func methods() []string {
	var names []string
	for _, route := range routes() {
		names = append(names, route.Method)
	}
	return names
}

// catalogRoutes read what was always there.
func catalogRoutes() []engine.Route {
	return []engine.Route{
		{Method: "projects.get", Pattern: "GET ", Answer: getProject},
		{Method: "regions.list", Pattern: "GET regions", Answer: listRegions},
		{Method: "regions.get", Pattern: "GET regions/{name}", Answer: getRegion},
		{Method: "zones.list", Pattern: "GET zones", Answer: listZones},
		{Method: "zones.get", Pattern: "GET zones/{zone}", Answer: getZone},
	}
}

// jobs makes an empty job of each method that changes something.
func jobs() map[string]func() engine.Job {
	all := disks.Jobs()
	maps.Copy(all, snapshots.Jobs())
	maps.Copy(all, instances.Jobs())
	return all
}

// calls serves the methods of Google.
type calls struct {
	engine *engine.Engine
	token  token
}

func (s calls) route(mux *http.ServeMux) {
	for _, route := range routes() {
		verb, path, _ := strings.Cut(route.Pattern, " ")
		for _, version := range wire.Versions {
			pattern := strings.TrimSuffix(wire.BasePath+version+"/projects/{project}/"+path, "/")
			mux.HandleFunc(verb+" "+pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, route, version) })
		}
	}
	for _, version := range wire.Versions {
		mux.HandleFunc(wire.BasePath+version+"/projects/", s.refuseMethod)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		// Outside the API, Google answers with a page for people, and no reason.
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<title>Error 404 (Not Found)</title>\n")) // a client that went away hears nothing
	})
}

// refuseMethod refuses what the API has and this server does not: never with notFound,
// which clients take for "the resource is gone".
func (s calls) refuseMethod(w http.ResponseWriter, r *http.Request) {
	err := s.token.authorize(r)
	if err == nil {
		err = wire.NotServed(r.Method + " " + r.URL.Path)
	}
	wire.Respond(w, nil, err)
}

// serve answers a call, or makes it go wrong as it is configured to.
func (s calls) serve(w http.ResponseWriter, r *http.Request, route engine.Route, version string) {
	answer, lost, err := s.answer(r, route, version)
	s.engine.Options.Log.V(1).Info("answered", "method", route.Method, "path", r.URL.Path, "error", err, "lost", lost)
	if lost {
		// It was done, and the client never hears of it.
		panic(http.ErrAbortHandler)
	}
	wire.Respond(w, answer, err)
}

// refuses reports whether a zone is down for a method. That it is can be read.
func (s calls) refuses(zone, method string) bool {
	return s.engine.Jobs[method] != nil && s.engine.Faults.IsDown(zone) || s.engine.Faults.IsSilent(zone) && method != "zones.get"
}

func (s calls) answer(r *http.Request, route engine.Route, version string) (answer any, lost bool, err error) {
	if err := s.token.authorize(r); err != nil {
		return nil, false, err
	}
	call, err := wire.Read(r, wire.Method{Name: route.Method, Version: version, Changes: s.engine.Jobs[route.Method] != nil}, s.engine.Options.Locations)
	if err != nil {
		return nil, false, err
	}
	call.Fault = s.engine.Faults.Draw(route.Method)
	if err := s.engine.Pause(r.Context(), s.engine.Faults.Latency().Answer); err != nil {
		return nil, false, err
	}
	if refused := engine.Refusal(call.Fault); refused != nil {
		return nil, false, refused
	}
	if s.refuses(call.Zone, route.Method) {
		return nil, false, wire.ZoneDown(call.Zone)
	}
	call.IsSilent = s.engine.Faults.IsSilent
	if answer, err = route.Answer(s.engine, call); err == nil {
		answer, err = call.Fields.From(answer)
	}
	return answer, call.Fault.LosesAnswer(), err
}
